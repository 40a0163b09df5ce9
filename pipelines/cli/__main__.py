"""`python -m pipelines.cli` is the command `orderbridge`."""

from pipelines.cli.main import main

if __name__ == "__main__":
    main()

"""What each command does, one room per family; `evo.cli` holds their flags alone, so that `evo --help` stays quick."""

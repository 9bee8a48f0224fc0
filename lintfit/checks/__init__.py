"""One module for each rule, named as its page in ``rules/``: what the rule reports, and why, stands there."""

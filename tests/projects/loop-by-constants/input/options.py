import sys
from ast import literal_eval

for word in sys.argv[1:]:
    if "=" not in word:
        exec(open(word).read())
        continue
    key, text = word.split("=")
    key = key[2:]
    if key not in globals():
        raise ValueError(f"no such option: {key}")
    try:
        value = literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    globals()[key] = value

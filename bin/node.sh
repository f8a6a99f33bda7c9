# For the programs beside this file, which source it with $root set to the checkout: sets $node to a Node that is new
# enough to run TypeScript, the one that `npm install` brought or the machine's own.
node=$root/node_modules/.bin/node
if [ ! -x "$node" ]; then
  node=$(command -v node) || node=false
  case $("$node" --version 2>/dev/null || true) in
    v2[4-9].* | v[3-9][0-9].*) ;;
    *)
      echo "${0##*/}: Node 24.16 or newer is needed. Run \`npm install\` in $root (it brings one), or install it." >&2
      exit 1
      ;;
  esac
fi

package coremain

import (
	"fmt"
	"io"
	"strings"
)

// completionCommand is coredns completion: what makes a shell complete the commands and their flags. The scripts ask
// the program itself nothing, so they work where it does not run.
func completionCommand(args []string, out io.Writer) (int, error) {
	if len(args) != 1 {
		return 2, fmt.Errorf("one shell is expected: bash, zsh or fish")
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	all := strings.Join(names, " ")
	var script string
	switch args[0] {
	case "bash":
		script = fmt.Sprintf(bashCompletion, all, all)
	case "zsh":
		script = "#compdef coredns\nautoload -U +X bashcompinit && bashcompinit\n" + fmt.Sprintf(bashCompletion, all, all)
	case "fish":
		var b strings.Builder
		for _, c := range commands() {
			fmt.Fprintf(&b, "complete -c coredns -n __fish_use_subcommand -a %s -d %q\n", c.name, c.help)
		}
		script = b.String()
	default:
		return 2, fmt.Errorf("unknown shell %q: must be one of bash, zsh, fish", args[0])
	}
	_, err := io.WriteString(out, script)
	return 0, err
}

const bashCompletion = `_coredns() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="%s -conf -dns.port -p -quiet -version -plugins -validate"
    else
        case ${COMP_WORDS[1]} in
        validate) words="-conf -json -strict" ;;
        fmt) words="-w -d" ;;
        completion) words="bash zsh fish" ;;
        *) case " %s " in *" ${COMP_WORDS[1]} "*) words="" ;; *) words="-conf -dns.port -p -quiet" ;; esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}
complete -F _coredns coredns
`

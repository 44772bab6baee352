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
	var asked []string // commands of ctl, by their first words
	for _, c := range ctlCommands {
		if !strings.Contains(c.name, " ") {
			asked = append(asked, c.name)
		}
	}
	bash := fmt.Sprintf(bashCompletion, all, strings.Join(asked, " "))
	var script string
	switch args[0] {
	case "bash":
		script = bash
	case "zsh":
		script = "#compdef coredns\nautoload -U +X bashcompinit && bashcompinit\n" + bash
	case "fish":
		var b strings.Builder
		for _, c := range commands() {
			fmt.Fprintf(&b, "complete -c coredns -n __fish_use_subcommand -a %s -d %q\n", c.name, c.help)
		}
		fmt.Fprintf(&b, "complete -c coredns -n '__fish_seen_subcommand_from ctl' -a %q\n", strings.Join(asked, " "))
		script = b.String()
	default:
		return 2, fmt.Errorf("unknown shell %q: must be one of bash, zsh, fish", args[0])
	}
	_, err := io.WriteString(out, script)
	return 0, err
}

const bashCompletion = `_coredns() {
    local word=${COMP_WORDS[COMP_CWORD]} words="" files=yes
    case $COMP_CWORD in
    1) words="%s -conf -dns.port -p -quiet -version -plugins -validate" files="" ;;
    *)
        case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
        "ctl cache") [ "$COMP_CWORD" -gt 2 ] && words="get flush zone all" ;;
        "ctl top") [ "$COMP_CWORD" -gt 2 ] && words="names nxdomain clients types rcodes reset" ;;
        "ctl log") [ "$COMP_CWORD" -gt 2 ] && words="debug info" ;;
        "ctl tail") words="name= type= rcode= client= slower= failed=true n=" ;;
        esac
        if [ -z "$words" ]; then
            case ${COMP_WORDS[1]} in
            validate) words="-conf -json -strict" ;;
            fmt) words="-w -d -conf" ;;
            explain) words="-s -once -c -t -do -json -conf" ;;
            ctl) words="%s -s -json" ;;
            completion) words="bash zsh fish" files="" ;;
            *) words="-conf -dns.port -p -quiet" ;;
            esac
        fi
        ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word") ${files:+$(compgen -f -- "$word")})
}
complete -F _coredns coredns
`

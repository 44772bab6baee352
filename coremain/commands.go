package coremain

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/coredns/caddy"
)

// command is a sub-command: coredns NAME ARGS...
type command struct {
	name, usage, help string
	// flags declares the command's flags; run runs it with what is left behind them, and returns the exit status.
	flags func(*flag.FlagSet)
	run   func(args []string, out io.Writer) (int, error)
}

// commands is all of them, in the order in which help lists them.
func commands() []command {
	return []command{
		{"validate", "[-json] [-strict] [COREFILE]", "check a configuration; nothing is opened or asked", validateFlags, validateCommand},
		{"fmt", "[-w | -d] [COREFILE]", "format a Corefile; comments stay", formatFlags, formatCommand},
		{"explain", "[-s SOCKET | -once] NAME [TYPE] [-c CLIENT] [-t TRANSPORT] [-do] [-json]", "tell which way a question takes through the server", explainFlags, explainCommand},
		{"ctl", "[-s SOCKET] [-json] COMMAND", "look into a server that runs, and steer it", ctlFlags, ctlCommand},
		{"build", "-source FOLDER | -version VERSION [-o FILE] PLUGIN...", "build a server with more plugins: [NAME:]PACKAGE[@VERSION] [after=NAME | before=NAME], or a folder", buildFlags, buildCommand},
		{"completion", "bash|zsh|fish", "print what makes a shell complete these commands", nil, completionCommand},
	}
}

// runCommand runs the sub-command that args begin with. It reports false if that is none, and does nothing.
func runCommand(args []string) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return 0, false
	}
	c := all[i]
	flags := flag.NewFlagSet("coredns "+c.name, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: coredns %s %s\n%s.\n", c.name, c.usage, c.help)
		flags.PrintDefaults()
	}
	if c.flags != nil {
		c.flags(flags)
	}
	rest, err := parseAnywhere(flags, args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, true
	case err != nil:
		return 2, true
	}
	log.SetFlags(0)
	status, err = c.run(rest, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "coredns "+c.name+":", err)
		status = max(status, 1)
	}
	return status, true
}

// parseAnywhere parses flags that may stand before, between and behind the arguments, which it returns. Behind -- all
// are arguments.
func parseAnywhere(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		left := flags.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if parsed := len(args) - len(left); parsed > 0 && args[parsed-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// asJSON has commands print for programs.
var asJSON bool

// corefileFlags declares the flags of a command that reads a Corefile.
func corefileFlags(f *flag.FlagSet) {
	f.StringVar(&conf, "conf", "", "Corefile to read (default \""+defaultFile+"\")")
	f.StringVar(&dnsserver.Port, "dns.port", dnsserver.DefaultPort, "Default port")
	f.StringVar(&dnsserver.Port, "p", dnsserver.DefaultPort, "Default port")
}

// corefileArg takes the name of a Corefile from the arguments of a command.
func corefileArg(args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("one Corefile is expected, and not %s", strings.Join(args, " "))
	case len(args) == 1 && conf != "":
		return fmt.Errorf("the Corefile is named twice: by -conf %s and by %s", conf, args[0])
	case len(args) == 1:
		conf = args[0]
	}
	return nil
}

func validateFlags(f *flag.FlagSet) {
	corefileFlags(f)
	f.BoolVar(&strict, "strict", false, "Fail on warnings, too")
	f.BoolVar(&asJSON, "json", false, "Print an object with file, valid, error and warnings")
}

// validateCommand is coredns validate. Its status is 0 for what can be served, else 1.
func validateCommand(args []string, out io.Writer) (int, error) {
	if err := corefileArg(args); err != nil {
		return 2, err
	}
	if err := dnsserver.Register(); err != nil {
		return 1, err
	}
	log.SetOutput(os.Stderr)
	input, err := caddy.LoadCaddyfile(serverType)
	var r report
	if err != nil {
		r = report{File: conf, Error: findingOf(err), Warnings: []finding{}, err: err}
		err = nil
	} else {
		r = check(input)
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(r)
	} else {
		r.print(out)
	}
	if !r.Valid {
		return 1, err
	}
	return 0, err
}

// print tells people of a report.
func (r *report) print(out io.Writer) {
	for _, w := range r.Warnings {
		fmt.Fprintln(out, w)
	}
	if len(r.Foreign) > 0 {
		fmt.Fprintf(out, "The setup of third-party plugins was run, and may do what it likes: %s\n", strings.Join(r.Foreign, ", "))
	}
	switch n := len(r.Warnings); {
	case r.err != nil:
		fmt.Fprintln(os.Stderr, r.err)
	case !r.Valid:
		fmt.Fprintf(os.Stderr, "%s is refused: warnings count with -strict, and it has %d\n", r.File, n)
	case n > 0:
		fmt.Fprintf(out, "%s is valid, with warnings: %d\n", r.File, n)
	default:
		fmt.Fprintf(out, "%s is valid\n", r.File)
	}
}

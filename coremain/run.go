// Package coremain is the program around the server: its flags, where the Corefile comes
// from, start, reload and end.
//
//	flags ──▶ loader.go: Corefile ──▶ caddy.Start ──▶ servers run until a signal ends them
//
// Its flags stand on the standard flag set from the package's import on, so that
// programs that embed the server may parse them and look them up. Start at Run.
package coremain

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/systemd"

	"github.com/coredns/caddy"
)

const serverType = "dns"

// LogFlags are the flags of Go's log while the server runs: none, as log lines have no
// time of their own.
var LogFlags int

var (
	conf     string
	plugins  bool
	version  bool
	validate bool
	strict   bool

	logFormat = textFormat
)

// format is how log lines are written.
type format string

const (
	textFormat format = "text"
	jsonFormat format = "json"
)

// String is the format's name.
func (f *format) String() string { return string(*f) }

// Set is what the flag -log-format does.
func (f *format) Set(name string) error {
	switch format(name) {
	case textFormat, jsonFormat:
		*f = format(name)
		return nil
	}
	return errors.New("must be text or json")
}

func init() {
	flag.StringVar(&conf, "conf", "", "Corefile to load (default \""+defaultFile+"\")")
	flag.StringVar(&caddy.PidFile, "pidfile", "", "Path to write pid file")
	flag.Var(&logFormat, "log-format", "Format of log lines: text or json")
	flag.BoolVar(&plugins, "plugins", false, "List installed plugins")
	flag.BoolVar(&dnsserver.Quiet, "quiet", false, "Quiet mode (no initialization output)")
	flag.BoolVar(&version, "version", false, "Show version")
	flag.BoolVar(&validate, "validate", false, "Check the Corefile and exit")
	flag.BoolVar(&strict, "strict", false, "With -validate: fail on warnings, too")

	caddy.AppName = CoreName
	caddy.AppVersion = Version()
	registerLoaders()
}

// Run runs the server until a signal ends the process.
//
// A first argument that names a sub-command, such as validate, runs that instead. Programs that have parsed the flags
// before have no sub-commands: their arguments are their own.
func Run() {
	if !flag.Parsed() {
		if status, ok := runCommand(os.Args[1:]); ok {
			os.Exit(status)
		}
	}
	release := holdSignals()
	if err := dnsserver.Register(); err != nil {
		fail(err)
	}
	if !flag.Parsed() {
		flag.Parse()
	}
	if flag.NArg() > 0 {
		log.Fatalf("extra command line arguments: %s", flag.Args())
	}
	clog.SetOutput(os.Stdout)
	log.SetFlags(LogFlags)
	if logFormat == jsonFormat && !validate { // whose report is for people
		clog.SetJSON(os.Stdout)
	}

	switch {
	case version:
		fmt.Print(versionText())
		os.Exit(0) // programs of others may have something behind Run, for a server that has ended
	case strict && !validate:
		fail(errors.New("flag -strict is of use with -validate only"))
	case plugins:
		fmt.Println(caddy.DescribePlugins())
		os.Exit(0)
	}
	if runAsService() {
		return
	}
	input, err := caddy.LoadCaddyfile(serverType)
	if err != nil {
		fail(err)
	}
	if validate {
		if err := runValidate(input); err != nil {
			fail(err)
		}
		os.Exit(0)
	}
	tellManager()
	instance, err := caddy.Start(input)
	if err != nil {
		fail(explained(err, input))
	}
	endUpgrade(input)
	release()
	for _, addr := range systemd.Unused() {
		clog.Warningf("No server block listens on %s, for which there is a socket of the service manager", addr)
	}
	if !dnsserver.Quiet {
		clog.Print(versionText())
	}
	instance.Wait()
}

// explained is why a configuration was refused, with what to do about it.
func explained(err error, input caddy.Input) error {
	return corefile.Explain(err, input.Path(), input.Body(), dnsserver.Directives)
}

// fail ends the process with a line on standard error.
func fail(err error) {
	if clog.JSON() {
		clog.SetJSON(os.Stderr)
		clog.Fatal(err)
	}
	clog.Sync()
	log.SetOutput(os.Stderr)
	log.SetFlags(0)
	log.Fatal(err)
}

package coremain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

// runValidate is the program with -validate: it prints what is doubtful in a configuration, and fails if that
// cannot be served; with -strict also for what is doubtful.
func runValidate(input caddy.Input) error {
	r := check(input)
	for _, w := range r.Warnings {
		fmt.Println(w)
	}
	switch n := len(r.Warnings); {
	case r.err != nil:
		return r.err
	case n == 0:
		fmt.Printf("%s is valid\n", input.Path())
	case strict:
		return fmt.Errorf("%s is refused: warnings count with -strict, and it has %d", input.Path(), n)
	default:
		fmt.Printf("%s is valid, with warnings: %d\n", input.Path(), n)
	}
	return nil
}

// report is what came of the check of a configuration.
type report struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Error    *finding  `json:"error,omitempty"`
	Warnings []finding `json:"warnings"`
	Foreign  []string  `json:"thirdPartySetup,omitempty"` // directives whose setup is not ours, and was run

	err error
}

// finding is a mistake or a doubt.
type finding struct {
	Place string `json:"place,omitempty"` // file and line
	Text  string `json:"text"`
}

// String is the finding as a warning.
func (f finding) String() string {
	if f.Place == "" {
		return "Warning: " + f.Text
	}
	return f.Place + " - Warning: " + f.Text
}

// check looks at a configuration as far as that can be done without starting it.
func check(input caddy.Input) report {
	r := report{File: input.Path(), Warnings: []finding{}}
	if r.err = written(input); r.err == nil {
		doubts := &warnings{others: log.Writer()}
		log.SetOutput(doubts)
		r.err = explained(dnsserver.Validate(input), input)
		log.SetOutput(doubts.others)
		r.Warnings = append(r.Warnings, doubts.all...)
	}
	outline := corefile.Read(input.Path(), input.Body())
	r.Foreign = foreign(outline)
	if r.err != nil {
		r.Error = findingOf(r.err)
		return r
	}
	for _, d := range corefile.Doubts(outline, dnsserver.Directives) {
		r.Warnings = append(r.Warnings, finding(d))
	}
	r.Valid = !strict || len(r.Warnings) == 0
	return r
}

var errorPlace = regexp.MustCompile(`(\S+:\d+) - (?:Error during parsing|Syntax error): `)

// findingOf is an error with its place apart.
func findingOf(err error) *finding {
	f := &finding{Text: err.Error()}
	if m := errorPlace.FindStringSubmatch(f.Text); m != nil {
		f.Place = m[1]
	}
	return f
}

// foreign is the directives of a configuration that come from plugins of others.
func foreign(o *corefile.Outline) (names []string) {
	for _, b := range o.Blocks {
		for _, d := range b.Directives {
			known := slices.Contains(dnsserver.Directives, d.Name.Text)
			if known && d.Name.Text != "on" && corefile.Foreign(d.Name.Text) && !slices.Contains(names, d.Name.Text) {
				names = append(names, d.Name.Text)
			}
		}
	}
	return names
}

// written returns an error if nobody has written what input holds: without a Corefile, or with one that has no
// server block, the built-in configuration is served.
func written(input caddy.Input) error {
	if builtIn(input) {
		return errors.New("there is no " + defaultFile + " here: name the file to check by -conf")
	}
	if len(corefile.Read(input.Path(), input.Body()).Blocks) > 0 {
		return nil
	}
	blocks, err := caddyfile.Parse(input.Path(), bytes.NewReader(input.Body()), nil)
	if err == nil && len(blocks) == 0 {
		err = fmt.Errorf("%s has no server block", input.Path())
	}
	return explained(err, input)
}

// builtIn reports whether input is what is served without a Corefile.
func builtIn(input caddy.Input) bool {
	own := caddy.DefaultInput(serverType)
	named := conf != "" && conf != "stdin"
	return !named && !here.wasThere() && input.Path() == own.Path() && bytes.Equal(input.Body(), own.Body())
}

// warnings takes warnings out of what is logged, once each, with the place in the Corefile that they are about.
// What else is logged goes to others.
type warnings struct {
	others io.Writer

	mu  sync.Mutex
	all []finding // guarded by mu until the configuration is read
}

func (w *warnings) Write(line []byte) (int, error) {
	_, text, ok := strings.Cut(string(line), "[WARNING] ")
	if !ok {
		return w.others.Write(line)
	}
	f := finding{corefile.Place(), strings.TrimSpace(text)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.all, f) { // a block's directives are set up once for each of its keys
		w.all = append(w.all, f)
	}
	return len(line), nil
}

package coremain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
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
	if err := hasBlock(input); err != nil {
		return err
	}
	doubts := &warnings{others: log.Writer()}
	log.SetOutput(doubts)
	err := dnsserver.Validate(input)
	log.SetOutput(doubts.others)
	for _, w := range doubts.all {
		fmt.Println(w)
	}
	switch n := len(doubts.all); {
	case err != nil:
		return err
	case n == 0:
		fmt.Printf("%s is valid\n", input.Path())
	case strict:
		return fmt.Errorf("%s is refused: warnings count with -strict, and it has %d", input.Path(), n)
	default:
		fmt.Printf("%s is valid, with warnings: %d\n", input.Path(), n)
	}
	return nil
}

// hasBlock returns an error if nobody has written what input holds: without a Corefile, or with one that has no
// server block, the built-in configuration is served.
func hasBlock(input caddy.Input) error {
	if builtIn(input) {
		return errors.New("there is no " + defaultFile + " here: name the file to check by -conf")
	}
	blocks, err := caddyfile.Parse(input.Path(), bytes.NewReader(input.Body()), nil)
	if err == nil && len(blocks) == 0 {
		err = fmt.Errorf("%s has no server block", input.Path())
	}
	return err
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
	all []string // guarded by mu until the configuration is read
}

func (w *warnings) Write(line []byte) (int, error) {
	_, text, ok := strings.Cut(string(line), "[WARNING] ")
	if !ok {
		return w.others.Write(line)
	}
	text = "Warning: " + strings.TrimSpace(text)
	if place := corefile.Place(); place != "" {
		text = place + " - " + text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.all, text) { // a block's directives are set up once for each of its keys
		w.all = append(w.all, text)
	}
	return len(line), nil
}

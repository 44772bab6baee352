package coremain

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

const defaultFile = "Corefile"

func registerLoaders() {
	caddy.RegisterCaddyfileLoader("flag", caddy.LoaderFunc(loadNamed))
	caddy.SetDefaultCaddyfileLoader("default", caddy.LoaderFunc(here.load))
}

// loadNamed loads the file that -conf names, or nothing without the flag. The name "stdin" is
// standard input.
func loadNamed(serverType string) (caddy.Input, error) {
	switch conf {
	case "":
		return nil, nil
	case "stdin":
		return standardInput(serverType)
	}
	return loadFile(conf, serverType)
}

func loadFile(path, serverType string) (caddy.Input, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	outline, err := readable(path, text)
	if err != nil {
		return nil, err
	}
	if err := emptied.check(path, text, outline); err != nil {
		return nil, err
	}
	return caddy.CaddyfileInput{Contents: text, Filepath: path, ServerTypeName: serverType}, nil
}

// readable is an error if the parser would not come to an end with a Corefile, or not soon.
func readable(path string, text []byte) (*corefile.Outline, error) {
	if err := corefile.CheckImports(path, text); err != nil {
		return nil, err
	}
	outline := corefile.Read(path, text)
	return outline, outline.CheckVariables()
}

// emptied is for the program's Corefile.
var emptied blocksSeen

// blocksSeen tells a file that never had a server block, for which the built-in configuration is served, from one that
// had some and has none now, as while it is being written: a reload must not serve the built-in configuration then.
type blocksSeen struct {
	mu   sync.Mutex
	some bool // there was one, guarded by mu
}

// check is an error if there are no server blocks any more. What else is wrong is told when they are set up. The parser
// is asked only where the outline has no block: it logs warnings, which are told when the configuration is set up, and
// takes seconds where thousands of blocks import a snippet.
func (b *blocksSeen) check(path string, text []byte, outline *corefile.Outline) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(outline.Blocks) > 0 {
		b.some = true
		return nil
	}
	if !b.some {
		return nil
	}
	if blocks, err := caddyfile.Parse(path, bytes.NewReader(text), nil); err == nil && len(blocks) == 0 {
		return fmt.Errorf("%s has no server block any more", path)
	}
	return nil
}

// stdin is read once; a reload gets the same text again.
var stdin struct {
	once  sync.Once
	input caddy.Input
	err   error
}

// standardInput is what can be read from standard input, or nothing if that is a terminal.
func standardInput(serverType string) (caddy.Input, error) {
	stdin.once.Do(func() {
		stdin.input, stdin.err = caddy.CaddyfileFromPipe(os.Stdin, serverType)
		if in := stdin.input; in != nil && stdin.err == nil {
			_, stdin.err = readable(in.Path(), in.Body())
		}
	})
	return stdin.input, stdin.err
}

// defaultLoader loads the Corefile of the working directory, or nothing if there never
// was one. One that was there and is gone is an error: a reload must not take it for the built-in configuration.
type defaultLoader struct {
	mu   sync.Mutex
	seen bool
}

// here loads it for the program.
var here defaultLoader

// wasThere reports whether a Corefile has been found.
func (d *defaultLoader) wasThere() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen
}

// found notes that there is a Corefile.
func (d *defaultLoader) found() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = true
}

func (d *defaultLoader) load(serverType string) (caddy.Input, error) {
	input, err := loadFile(defaultFile, serverType)
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) && !d.seen {
		return nil, nil
	}
	if err == nil {
		d.seen = true
	}
	return input, err
}

package cookie

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/stamp"
)

var logger = log.NewWithPlugin(pluginName)

// lookAgain is how often a file of secrets is looked at.
const lookAgain = 5 * time.Second

// secretFile is a file of secrets that is read again when it was changed. One goroutine at a time uses it.
type secretFile struct {
	path string
	ring *cookie.Ring // what it holds is in force
	last []byte       // what was read last, also if it has faults
	err  string       // what is wrong with it, and has been said
}

// openSecrets reads a file of secrets.
func openSecrets(path string) (*secretFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading secrets: %w", err)
	}
	keys, err := parseSecrets(text)
	if err != nil {
		return nil, fmt.Errorf("reading secrets of %s: %w", path, err)
	}
	return &secretFile{path: path, ring: cookie.NewRing(keys), last: text}, nil
}

// look reads the file again. What was in force stays so if the file has faults, which are complained of once.
func (f *secretFile) look() {
	var text []byte
	err := stamp.NoPipe(f.path)
	if err == nil {
		text, err = os.ReadFile(f.path)
	}
	if err == nil && bytes.Equal(text, f.last) {
		f.err = ""
		return
	}
	var keys cookie.Keys
	if err == nil {
		f.last = text
		keys, err = parseSecrets(text)
	}
	switch {
	case err == nil:
		f.err = ""
		f.ring.Set(keys)
		logger.Infof("Secrets of %s read again, there are %d", f.path, len(keys))
	case err.Error() != f.err:
		f.err = err.Error()
		logger.Errorf("Secrets of %s cannot be read again, the former ones stay: %v", f.path, err)
	}
}

// watcher looks at a file until it is stopped.
type watcher struct {
	file    *secretFile
	every   time.Duration
	stopped chan struct{}
	running sync.WaitGroup
}

func (w *watcher) start() error {
	w.stopped = make(chan struct{})
	w.running.Go(func() {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.file.look()
			case <-w.stopped:
				return
			}
		}
	})
	return nil
}

// stop ends what start began, if it did.
func (w *watcher) stop() error {
	if w.stopped != nil {
		close(w.stopped)
		w.running.Wait()
		w.stopped = nil
	}
	return nil
}

var errNoSecret = errors.New("there is no secret")

// parseSecrets reads one secret a line, of which the first one signs. Empty lines and what follows a # do not count.
func parseSecrets(text []byte) (keys cookie.Keys, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line, _, _ = bytes.Cut(line, []byte("#"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		s, err := cookie.ParseSecret(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, s)
	}
	if len(keys) == 0 {
		return nil, errNoSecret
	}
	return keys, nil
}

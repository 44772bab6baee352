package dnsserver

import (
	"bytes"
	"errors"

	"github.com/coredns/caddy"
)

// errNoLoader says that a Corefile cannot be read again.
var errNoLoader = errors.New("no loader of this program has one")

// Reread is the configuration that may take the place of i's: what the program's loaders find now
// (caddy.RegisterCaddyfileLoader).
//
// It is an error if they find nothing, as in a program that has none and gave its text to caddy.Start. Caddy has the
// built-in configuration then, which nobody wants in the place of another one.
func Reread(i *caddy.Instance) (caddy.Input, error) { return reread(i.Caddyfile()) }

func reread(running caddy.Input) (caddy.Input, error) {
	input, err := caddy.LoadCaddyfile(running.ServerType())
	if err != nil {
		return nil, err
	}
	if builtIn := caddy.DefaultInput(running.ServerType()); sameInput(input, builtIn) && !sameInput(running, builtIn) {
		return nil, errNoLoader
	}
	return input, nil
}

func sameInput(a, b caddy.Input) bool { return a.Path() == b.Path() && bytes.Equal(a.Body(), b.Body()) }

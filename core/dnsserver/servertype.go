package dnsserver

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coredns/caddy"
)

// Register registers the server type "dns" with caddy, unless it was done before, and returns what the first call
// did. Programs need it only if they are built with the tag coredns_manual_registration: else the import of this
// package does it. The error is that somebody else has registered a server type of that name, which stays.
func Register() error { return registerOnce() }

var registerOnce = sync.OnceValue(registerType)

// registerType registers the server type. Caddy panics if there is one of that name.
func registerType() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("registering the server type %q: %v", serverType, v)
		}
	}()
	caddy.RegisterServerType(serverType, caddy.ServerType{
		// Programs change the list before they start the server: read it each time.
		Directives: func() []string { return Directives },
		DefaultInput: func() caddy.Input {
			return caddy.CaddyfileInput{
				Filepath:       "Corefile",
				Contents:       []byte(".:" + Port + " {\nwhoami\nlog\n}\n"),
				ServerTypeName: serverType,
			}
		},
		NewContext: newContext,
	})
	return nil
}

// SetDirectives makes a copy of names the Directives, in their order. Such as are not registered yet may be among
// them. It is called before the server starts. With an empty name, or one that stands there twice, it changes
// nothing and returns an error.
func SetDirectives(names []string) error {
	met := map[string]bool{}
	for _, name := range names {
		switch {
		case name == "":
			return errors.New("a directive without a name")
		case met[name]:
			return fmt.Errorf("the directive %s stands there twice", name)
		}
		met[name] = true
	}
	Directives = slices.Clone(names)
	return nil
}

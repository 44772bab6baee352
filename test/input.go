package test

import "github.com/coredns/caddy"

// Input is a Corefile in memory, as caddy.Start and Instance.Restart take it.
type Input struct{ corefile []byte }

var _ caddy.Input = (*Input)(nil)

// NewInput returns corefile as an Input.
func NewInput(corefile string) *Input { return &Input{[]byte(corefile)} }

// Body returns the Corefile's text.
func (i *Input) Body() []byte { return i.corefile }

// Path returns the name that errors tell.
func (i *Input) Path() string { return "Corefile" }

// ServerType returns "dns".
func (i *Input) ServerType() string { return "dns" }

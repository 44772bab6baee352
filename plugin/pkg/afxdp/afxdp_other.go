//go:build !linux

package afxdp

import "errors"

// Device is a network interface. There is none on this system.
type Device struct{ Native bool }

// Open says that this system has no AF_XDP.
func Open(string) (*Device, error) { return nil, errors.New("only Linux has AF_XDP") }

// Close and Queues are never called.
func (*Device) Close()      {}
func (*Device) Queues() int { return 0 }

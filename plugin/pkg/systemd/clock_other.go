//go:build !linux

package systemd

// Reloading does nothing: there is no such manager.
func Reloading() error { return nil }

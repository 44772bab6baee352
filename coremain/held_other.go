//go:build windows || plan9 || js

package coremain

// holdSignals has nothing to hold: no signal asks for more than the end.
func holdSignals() (release func()) {
	trapSignals()
	return func() {}
}

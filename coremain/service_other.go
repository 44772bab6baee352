//go:build !windows

package coremain

// runAsService reports whether the process ran as a service, which only Windows has.
func runAsService() bool { return false }

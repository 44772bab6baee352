//go:build !unix

package geoip

// room is size octets, and how to give them back.
func room(size int) (b []byte, free func()) { return make([]byte, size), func() {} }

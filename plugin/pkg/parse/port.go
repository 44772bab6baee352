package parse

import (
	"fmt"
	"net"
	"strings"
)

// Endpoint checks the ports of servers that are to be asked, [SCHEME://]HOST[:PORT][/PATH] each. A port is a number
// from 1 to 65535, or the name of a service that the system knows. What else they are made of is not looked at: it is
// for those who ask to say what they take.
func Endpoint(all ...string) error {
	for _, text := range all {
		_, rest, found := strings.Cut(text, "://")
		if !found {
			rest = text
		}
		rest, _, _ = strings.Cut(rest, "/")
		_, port, err := net.SplitHostPort(rest)
		if err != nil {
			continue // there is none
		}
		port, _, _ = strings.Cut(port, "%") // the name of a server may follow
		if err := checkPort(port, text, 1); err != nil {
			return err
		}
	}
	return nil
}

// ListenAddr checks an address to listen at, HOST:PORT: HOST may be empty, and PORT 0, which is any.
func ListenAddr(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return err
	}
	return checkPort(port, text, 0)
}

// checkPort is an error if port, that of text, is none, or less than least. An empty one is left to who reads text.
func checkPort(port, text string, least int) error {
	if port == "" {
		return nil
	}
	if n, err := net.LookupPort("ip", port); err != nil || n < least {
		return fmt.Errorf("invalid port %q in %q: must be a number from %d to 65535", port, text, least)
	}
	return nil
}

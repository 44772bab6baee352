package status

import "net/netip"

// Recursor is a plugin that asks the servers of zones itself.
type Recursor interface {
	// DelegationStatus tells at which servers a query for a name begins, with what is kept of them. The name is lower,
	// in wire form. It reports false if the plugin is not for that name.
	DelegationStatus(name []byte) (Delegation, bool)
	// ServerStatus tells what is known of the servers at an address, one for each port.
	ServerStatus(a netip.Addr) []Server
}

// Delegation is the servers of a zone, as they are known where it is delegated (RFC 9499 §7).
type Delegation struct {
	Zone    string   `json:"zone"`
	From    string   `json:"from"`          // who tells: parent, stub or hints
	TTL     int      `json:"ttl,omitempty"` // seconds that are left of what a parent has told
	DS      bool     `json:"ds,omitempty"`  // DS records came with it
	Servers []Server `json:"servers"`
}

// Server is what there is to tell of a server of zones.
type Server struct {
	Host      string   `json:"host,omitempty"`     // its name in a delegation
	Address   string   `json:"address,omitempty"`  // with its port; none if the name has not been looked up
	State     string   `json:"state"`              // unknown, alive, dead, or plain: without EDNS
	RTT       float64  `json:"rttMs,omitempty"`    // milliseconds until a reply, smoothed
	Timeouts  int      `json:"timeouts,omitempty"` // since the last reply
	Bare      bool     `json:"bare,omitempty"`     // it is asked without EDNS options
	CaseBlind bool     `json:"caseBlind,omitempty"`
	TCPOnly   bool     `json:"tcpOnly,omitempty"` // it was silent over UDP; that is tried again after a minute
	Lame      []string `json:"lame,omitempty"`    // zones that it does not serve, though it should
}

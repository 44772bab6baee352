package status

import "time"

// Anchors is a plugin that validates signatures (RFC 4033).
type Anchors interface {
	// AnchorStatus tells of the keys of trust anchors, and of negative trust anchors, in any order.
	AnchorStatus() ([]Anchor, []NegativeAnchor)
	// AddNegative has a lower-case name in wire form, and all below it, not validated for a while (RFC 7646). An error
	// tells that it may not last that long, or was not written to its file; in that case it holds all the same.
	AddNegative(name []byte, d time.Duration) error
	// DropNegative ends one, and reports whether there was one.
	DropNegative(name []byte) (bool, error)
}

// Anchor is a key of a trust anchor, or a DS record that speaks for one.
type Anchor struct {
	Zone      string    `json:"zone"`
	Tag       uint16    `json:"tag"`
	Algorithm uint8     `json:"algorithm"`
	State     string    `json:"state"`          // configured, or as RFC 5011 §4.1 has it
	Since     time.Time `json:"since,omitzero"` // that it is in the state
}

// NegativeAnchor is a negative trust anchor (RFC 7646).
type NegativeAnchor struct {
	Name string    `json:"name"`
	Ends time.Time `json:"ends"`
}

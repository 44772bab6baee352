package response

import "fmt"

// Type says what kind of reply a message is.
type Type int

// The types, in the order of their strings.
const (
	// NoError is a reply with an answer, and an empty NOERROR reply without an SOA record.
	NoError Type = iota
	// NameError is NXDOMAIN.
	NameError
	// ServerError is SERVFAIL and NOTIMP without an answer. Both say nothing about the name.
	ServerError
	// NoData is NOERROR without an answer, with an SOA record (RFC 2308 §2.2).
	NoData
	// Delegation is NOERROR without an answer, with NS records in the authority section.
	Delegation
	// Meta is a NOTIFY or a zone transfer.
	Meta
	// Update is a dynamic update (RFC 2136).
	Update
	// OtherError is any other reply, and what should not be used: no message, expired signatures, NXDOMAIN
	// with an answer.
	OtherError
)

var typeNames = [...]string{
	NoError:     "NOERROR",
	NameError:   "NXDOMAIN",
	ServerError: "SERVERERROR",
	NoData:      "NODATA",
	Delegation:  "DELEGATION",
	Meta:        "META",
	Update:      "UPDATE",
	OtherError:  "OTHERERROR",
}

// String returns the name of t, for instance "NODATA".
func (t Type) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return fmt.Sprintf("Type(%d)", int(t))
	}
	return typeNames[t]
}

// TypeFromString returns the type that String names s. For any other text it returns NoError and an error.
func TypeFromString(s string) (Type, error) {
	for t, name := range typeNames {
		if s == name {
			return Type(t), nil
		}
	}
	return NoError, fmt.Errorf("invalid Type: %s", s)
}

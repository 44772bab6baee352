package rewrite

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// variables are what a local option may hold of a query.
var variables = []string{"qname", "qtype", "client_ip", "client_port", "protocol", "server_ip", "server_port"}

// value appends to b what the rule's option holds. It reports false if that is not known for this query. ctx is only
// needed where a label is read.
func (r *optionRule) value(b []byte, ctx context.Context, q *wire.Query) ([]byte, bool) { //nolint:revive // as all Append functions
	switch {
	case r.action == Unset, r.kind == nsidOption:
		return b, true
	case r.kind == subnetOption:
		return r.subnet(b, q.Client.Addr())
	case r.label != "":
		f := metadata.ValueFunc(ctx, r.label)
		if f == nil {
			return b, false
		}
		text := f()
		return append(b, text...), text != ""
	case r.variable != "":
		n := len(b)
		b = appendVariable(b, r.variable, q)
		return b, len(b) > n
	}
	return append(b, r.data...), true
}

func appendVariable(b []byte, name string, q *wire.Query) []byte {
	switch name {
	case "qname":
		return wire.AppendText(b, q.Name())
	case "qtype":
		return binary.BigEndian.AppendUint16(b, q.Type())
	case "client_ip":
		return appendAddr(b, q.Client.Addr())
	case "client_port":
		return appendPort(b, q.Client)
	case "protocol":
		return append(b, q.Proto.String()...)
	case "server_ip":
		return appendAddr(b, q.Local.Addr())
	case "server_port":
		return appendPort(b, q.Local)
	}
	return b
}

// appendAddr appends the 4 or 16 octets of an address.
func appendAddr(b []byte, a netip.Addr) []byte {
	switch {
	case a.Is4():
		four := a.As4()
		return append(b, four[:]...)
	case a.IsValid():
		sixteen := a.As16()
		return append(b, sixteen[:]...)
	}
	return b
}

func appendPort(b []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return b
	}
	return binary.BigEndian.AppendUint16(b, a.Port())
}

// subnet appends a client subnet option (RFC 7871 §6): family, prefix length, scope, and as many octets as the prefix has.
func (r *optionRule) subnet(b []byte, a netip.Addr) ([]byte, bool) {
	family, bits := uint16(1), r.v4len
	if !a.Is4() {
		family, bits = 2, r.v6len
	}
	network, err := a.WithZone("").Prefix(bits)
	if err != nil || !network.IsValid() { // it is not known who asks
		return b, false
	}
	b = binary.BigEndian.AppendUint16(b, family)
	b = append(b, byte(bits), 0)
	end := len(b) + (bits+7)/8
	return appendAddr(b, network.Addr())[:end], true
}

// newOptionRule reads TYPE ACTION ARGS... [revert].
func newOptionRule(m string, args []string) (Rule, error) {
	if len(args) < 2 {
		return nil, errors.New("too few arguments for an EDNS0 rule")
	}
	r := &optionRule{mode: mode(m), action: strings.ToLower(args[1])}
	r.reverted.rule = r
	if !slices.Contains([]string{Set, Append, Replace, Unset}, r.action) {
		return nil, fmt.Errorf("invalid action: %q", args[1])
	}
	read := map[string]func([]string) error{"local": r.local, "nsid": r.nsid, "subnet": r.clientSubnet}[strings.ToLower(args[0])]
	if read == nil {
		return nil, fmt.Errorf("invalid rule type %q", args[0])
	}
	return r, read(args[2:])
}

// takeRevert takes the word revert off arguments of which there may be n before it. It reports false if there are other words.
func (r *optionRule) takeRevert(args []string, n int) bool {
	if len(args) == n+1 && strings.ToLower(args[n]) == "revert" {
		r.revert = true
		return true
	}
	return len(args) == n
}

func (r *optionRule) local(args []string) (err error) {
	if r.action == Unset {
		if len(args) != 1 {
			return errors.New("local unset action requires exactly two arguments")
		}
		r.code, err = parseCode(args[0])
		return err
	}
	if !r.takeRevert(args, 2) {
		return errors.New("EDNS0 local rules require three or four args")
	}
	if r.code, err = parseCode(args[0]); err != nil {
		return err
	}
	return r.setData(args[1])
}

func parseCode(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 0, 16)
	return uint16(n), err
}

// setData reads what a local option holds: 0x and hexadecimal digits, a variable in braces, or any text.
func (r *optionRule) setData(text string) (err error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		r.data, err = hex.DecodeString(digits)
		return err
	}
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		r.data = []byte(text)
		return nil
	}
	name := text[1 : len(text)-1]
	switch {
	case slices.Contains(variables, name):
		r.variable = name
	case metadata.IsLabel(name):
		r.label = name
	default:
		return fmt.Errorf("unsupported variable name %q", text)
	}
	return nil
}

func (r *optionRule) nsid(args []string) error {
	r.kind, r.code = nsidOption, dns.EDNS0NSID
	if r.action == Unset && len(args) > 0 {
		return errors.New("nsid unset action requires exactly one argument")
	}
	if !r.takeRevert(args, 0) {
		return errors.New("EDNS0 NSID rules can accept no more than one arg")
	}
	return nil
}

func (r *optionRule) clientSubnet(args []string) (err error) {
	r.kind, r.code = subnetOption, dns.EDNS0SUBNET
	if r.action == Unset {
		if len(args) > 0 {
			return errors.New("subnet unset action requires exactly one argument")
		}
		return nil
	}
	if !r.takeRevert(args, 2) {
		return errors.New("EDNS0 subnet rules require three or four args")
	}
	if r.v4len, err = strconv.Atoi(args[0]); err != nil {
		return err
	}
	if r.v4len < 0 || r.v4len > 32 {
		return fmt.Errorf("invalid IPv4 bit mask length %d", r.v4len)
	}
	if r.v6len, err = strconv.Atoi(args[1]); err != nil {
		return err
	}
	if r.v6len < 0 || r.v6len > 128 {
		return fmt.Errorf("invalid IPv6 bit mask length %d", r.v6len)
	}
	return nil
}

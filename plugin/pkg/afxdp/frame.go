package afxdp

import (
	"encoding/binary"
	"net/netip"
)

// Octets of headers, and the most that a reply may have. A packet of 1,280 octets gets everywhere
// in one piece (RFC 8200 section 5; over IPv4 nearly so); for longer ones the kernel knows what
// paths take.
const (
	macLen      = 6
	etherLen    = 14
	ip4Len      = 20
	ip6Len      = 40
	udpLen      = 8
	headersLen  = etherLen + ip6Len + udpLen
	MaxPayload  = 1280 - ip6Len - udpLen
	hops        = 64
	protocolUDP = 17
)

// MACs is the link's addresses of a frame: the one it goes to, and the one it is from.
type MACs [2 * macLen]byte

// Datagram is a UDP datagram with what its reply needs. Addresses of IPv4 are in their own form.
type Datagram struct {
	Payload       []byte
	Client, Local netip.AddrPort
	MACs          MACs
}

// parse reads a frame that the program let pass: one of IPv4 without options or IPv6 without
// extensions, with UDP in it, and for us. A datagram that no reply can be sent to is none.
func (d *Datagram) parse(f []byte) bool {
	if len(f) < etherLen+ip4Len+udpLen {
		return false
	}
	copy(d.MACs[:], f)
	packet := f[etherLen:]
	var client, local netip.Addr
	var addresses, udp []byte
	// Lengths are those that the headers tell: a short packet is padded to the least frame.
	switch packet[0] >> 4 {
	case 4:
		total := int(binary.BigEndian.Uint16(packet[2:]))
		if total < ip4Len+udpLen || total > len(packet) || sum(0, packet[:ip4Len]) != 0xffff {
			return false
		}
		client, local = netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
		addresses, udp = packet[12:20], packet[ip4Len:total]
	case 6:
		if len(packet) < ip6Len+udpLen {
			return false
		}
		length := int(binary.BigEndian.Uint16(packet[4:]))
		if length < udpLen || length > len(packet)-ip6Len {
			return false
		}
		client, local = netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
		addresses, udp = packet[8:40], packet[ip6Len:ip6Len+length]
	default:
		return false
	}
	// UDP may be shorter than what IP has for it, and nobody can be answered at port 0.
	length := int(binary.BigEndian.Uint16(udp[4:]))
	port := binary.BigEndian.Uint16(udp)
	if length < udpLen || length > len(udp) || port == 0 || !speaks(client) || f[macLen]&1 != 0 ||
		!whole(addresses, udp[:length]) {
		return false
	}
	d.Client, d.Local = netip.AddrPortFrom(client, port), netip.AddrPortFrom(local, binary.BigEndian.Uint16(udp[2:]))
	d.Payload = udp[udpLen:length]
	return true
}

// whole reports whether a datagram's checksum is right (RFC 768): cards that see that it is wrong
// give us the frame all the same. It may be nought over IPv4 (RFC 8200 section 8.1). Where the sender's card
// is to make it, but there is none on the way, as between virtual machines, it is still the sum
// over the addresses, the protocol and the length.
func whole(addresses, udp []byte) bool {
	told := binary.BigEndian.Uint16(udp[6:])
	if told == 0 {
		return len(addresses) == 2*4
	}
	begun := sum(protocolUDP+uint32(len(udp)), addresses)
	return told == begun || sum(uint32(begun), udp) == 0xffff
}

// speaks reports whether a host can have a as its address on a link.
func speaks(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() && !(a.Is4() && a.As4()[0] >= 0xf0)
}

// putHeaders writes the headers of the reply to d whose payload lies at f[headersLen:], and returns
// where they begin in f. id is that of a packet of IPv4.
func (d *Datagram) putHeaders(f []byte, id uint16) (begin int) {
	payload := f[headersLen:]
	// UDP (RFC 768). Its checksum is of the addresses, too, and comes last.
	udp := f[headersLen-udpLen:]
	binary.BigEndian.PutUint16(udp, d.Local.Port())
	binary.BigEndian.PutUint16(udp[2:], d.Client.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLen+len(payload)))
	binary.BigEndian.PutUint16(udp[6:], 0)
	etherType := uint16(0x86dd)
	var addresses []byte
	if local := d.Local.Addr(); local.Is4() {
		etherType = 0x0800
		begin = headersLen - udpLen - ip4Len
		p := f[begin:]
		from, to := local.As4(), d.Client.Addr().As4()
		binary.BigEndian.PutUint32(p, 0x45<<24|uint32(ip4Len+len(udp)))
		binary.BigEndian.PutUint32(p[4:], uint32(id)<<16) // it may be taken apart on the way
		binary.BigEndian.PutUint32(p[8:], hops<<24|protocolUDP<<16)
		copy(p[12:], from[:])
		copy(p[16:], to[:])
		binary.BigEndian.PutUint16(p[10:], ^sum(0, p[:ip4Len]))
		addresses = p[12:20]
	} else {
		begin = headersLen - udpLen - ip6Len
		p := f[begin:]
		from, to := local.As16(), d.Client.Addr().As16()
		binary.BigEndian.PutUint32(p, 6<<28)
		binary.BigEndian.PutUint32(p[4:], uint32(len(udp))<<16|protocolUDP<<8|hops)
		copy(p[8:], from[:])
		copy(p[24:], to[:])
		addresses = p[8:40]
	}
	check := ^sum(uint32(sum(protocolUDP+uint32(len(udp)), addresses)), udp)
	if check == 0 {
		check = 0xffff // nought says that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	begin -= etherLen
	copy(f[begin:], d.MACs[macLen:])
	copy(f[begin+macLen:], d.MACs[:macLen])
	binary.BigEndian.PutUint16(f[begin+2*macLen:], etherType)
	return begin
}

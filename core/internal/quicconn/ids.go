package quicconn

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"os"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// ids makes the ids of connections. All of a transport begin with the same three octets, which are others in the one
// that takes its place, of this process or the next: so packets that come to a socket of both can be told apart. Who
// has not learned an id from a server begins with one of at least eight octets (RFC 9000 §7.2), so it is nobody's.
type ids [3]byte

// idLength is the octets of an id.
const idLength = 7

// idsOf are those of transport n of a process that has k. Neither is to be seen in them.
func (k *keys) idsOf(pid int, n uint32) (i ids) {
	h := hmac.New(sha256.New, k.token[:])
	h.Write([]byte("ids"))
	subtle.XORBytes(i[:], h.Sum(nil), []byte{byte(pid >> 8), byte(pid), byte(n)})
	return i
}

// transports is how many the process has had.
var transports atomic.Uint32

// newIDs are those of the next transport of the process.
func newIDs() ids {
	k := processKeys()
	return k.idsOf(os.Getpid(), transports.Add(1))
}

// ConnectionIDLen implements quic.ConnectionIDGenerator.
func (ids) ConnectionIDLen() int { return idLength }

// GenerateConnectionID implements quic.ConnectionIDGenerator.
func (i ids) GenerateConnectionID() (quic.ConnectionID, error) {
	var b [idLength]byte
	rand.Read(b[copy(b[:], i[:]):])
	return quic.ConnectionIDFromBytes(b[:]), nil
}

// made reports whether the id that a packet is for is one of i, by its header (RFC 8999 §5).
func (i ids) made(packet []byte) bool {
	switch {
	case len(packet) == 0:
		return false
	case packet[0]&0x80 == 0:
		return bytes.HasPrefix(packet[1:], i[:])
	}
	const at = 1 + 4 + 1 // behind the version and the length
	return len(packet) > at && packet[at-1] == idLength && bytes.HasPrefix(packet[at:], i[:])
}

// comesAgain reports whether a packet with an id of idLength is one of those that begin a connection, and has a token
// (RFC 9000 §17.2.2, RFC 9369 §3.2). A client that was asked to come again uses an id of the server that asked
// (§17.2.5.2), but has no connection yet. Once it has one, and another id, its further packets of the kind have the
// token, too, as have those of a client that got one in an earlier connection (§8.1).
func comesAgain(packet []byte) bool {
	const source = 1 + 4 + 1 + idLength // the length of the client's own id
	if packet[0]&0x80 == 0 {
		return false
	}
	initial := byte(0)
	if binary.BigEndian.Uint32(packet[1:]) == uint32(quic.Version2) {
		initial = 1
	}
	if packet[0]>>4&3 != initial || len(packet) <= source {
		return false
	}
	token := source + 1 + int(packet[source])
	return token < len(packet) && packet[token] != 0
}

package quicconn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"sync"

	"github.com/quic-go/quic-go"
)

// keys are those of the process: who takes over another one's socket knows what that one has handed out. Clients of
// connections that ended with it learn so at once (RFC 9000 §10.3), and addresses stay validated. That counts most for
// whom the one before has asked to come again: he cannot be greeted like one who comes for the first time
// (RFC 9000 §7.3).
type keys struct {
	reset quic.StatelessResetKey
	token quic.TokenGeneratorKey
}

// keysVar is the variable of the environment that hands them on to the process that takes the place of this one
// (SIGUSR2), in hexadecimal.
const keysVar = "COREDNS__QUIC_KEYS"

var processKeys = sync.OnceValue(findKeys)

// findKeys are the keys that the process before has handed on, or new ones. The process after gets them.
func findKeys() (k keys) {
	b, err := hex.DecodeString(os.Getenv(keysVar))
	if err != nil || len(b) != len(k.reset)+len(k.token) {
		b = make([]byte, len(k.reset)+len(k.token))
		rand.Read(b)
		os.Setenv(keysVar, hex.EncodeToString(b))
	}
	copy(k.token[:], b[copy(k.reset[:], b):])
	return k
}

// resetAt is the key of the stateless resets at an address. Each has its own: else whoever saw the id of a connection
// could get from another listener, which does not know it, what ends it (RFC 9000 §21.11). The sockets of one address
// have the same (*multisocket*): a client whose packets go to another one of them, as its own address has changed,
// connects again at once.
func (k *keys) resetAt(a net.Addr) *quic.StatelessResetKey {
	h := hmac.New(sha256.New, k.reset[:])
	h.Write([]byte(a.String()))
	return (*quic.StatelessResetKey)(h.Sum(nil))
}

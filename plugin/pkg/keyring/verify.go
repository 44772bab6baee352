package keyring

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// hashes is what algorithms are made of.
var hashes = map[string]func() hash.Hash{
	dns.HmacSHA1: sha1.New, dns.HmacSHA224: sha256.New224, dns.HmacSHA256: sha256.New, dns.HmacSHA384: sha512.New384, dns.HmacSHA512: sha512.New,
}

// HMAC is what a MAC is made with, by a secret in base64.
func HMAC(secret, algorithm string) (hash.Hash, error) {
	make, ok := hashes[dns.CanonicalName(algorithm)]
	if !ok {
		return nil, fmt.Errorf("algorithm %s is not known", algorithm)
	}
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	return hmac.New(make, key), nil
}

// Verify checks the signature of a packet, as dns.TsigVerify does, whatever records it has: that one walks over all of
// them, and fails at one that it misreads. The packet's id and count of records are others afterwards.
func Verify(packet []byte, secret, requestMAC string, timersOnly bool) error {
	walked := bytes.Clone(packet)
	hidden := wire.HideMisread(walked)
	if hidden == nil {
		return dns.TsigVerify(packet, secret, requestMAC, timersOnly)
	}
	return dns.TsigVerifyWithProvider(walked, &restorer{hidden, secret, requestMAC}, requestMAC, timersOnly)
}

// restorer checks a MAC over a message of which some types were hidden.
type restorer struct {
	hidden             []wire.Hidden
	secret, requestMAC string
}

// Generate is not called.
func (*restorer) Generate([]byte, *dns.TSIG) ([]byte, error) { return nil, dns.ErrSecret }

// Verify implements dns.TsigProvider. In data, the message stands behind the MAC of the one before and its length, if
// there is one (RFC 8945 §4.3.1).
func (r *restorer) Verify(data []byte, t *dns.TSIG) error {
	message := data
	if r.requestMAC != "" {
		message = data[2+hex.DecodedLen(len(r.requestMAC)):]
	}
	for _, h := range r.hidden {
		binary.BigEndian.PutUint16(message[h.Off:], h.Type)
	}
	mac, err := HMAC(r.secret, t.Algorithm)
	if err != nil {
		return dns.ErrKeyAlg
	}
	mac.Write(data)
	if sent, err := hex.DecodeString(t.MAC); err != nil || !hmac.Equal(sent, mac.Sum(nil)) {
		return dns.ErrSig
	}
	return nil
}

package reload

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

// hash tells configurations apart: the SHA512 of all tokens with their places, in JSON, after imports and environment variables
// have been put in. An input without a server block, as a file that is just being written may be, is an error.
func hash(input caddy.Input) (string, error) {
	blocks, err := caddyfile.Parse(input.Path(), bytes.NewReader(input.Body()), nil)
	if err != nil {
		return "", err
	}
	if len(blocks) == 0 {
		return "", errEmpty
	}
	text, err := json.Marshal(blocks)
	if err != nil {
		return "", err
	}
	sum := sha512.Sum512(text)
	return hex.EncodeToString(sum[:]), nil
}

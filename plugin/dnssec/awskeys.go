package dnssec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// SecretKeyData is a key pair as AWS Secrets Manager keeps it: both parts as they stand in files.
type SecretKeyData struct {
	Key     string `json:"key"`
	Private string `json:"private"`
}

// secretTimeout is how long all attempts to get a secret may take.
const secretTimeout = 30 * time.Second

// ParseKeyFromAWSSecretsManager reads a key pair from the secret of a name or ARN. See fetchSecret for the account that
// it belongs to.
func ParseKeyFromAWSSecretsManager(secretID string) (*DNSKEY, error) {
	return secretKey(context.Background(), secretID)
}

func secretKey(ctx context.Context, secretID string) (*DNSKEY, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	text, err := fetchSecret(ctx, secretID)
	if err != nil {
		return nil, err
	}
	var data SecretKeyData
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return nil, fmt.Errorf("failed to unmarshal secret data: %w", err)
	}
	rr, err := zonefile.Line(data.Key)
	if err != nil {
		return nil, fmt.Errorf("failed to parse public key: %w", err)
	}
	k, ok := rr.(*dns.DNSKEY)
	if !ok {
		return nil, errors.New("invalid public key format")
	}
	key, err := newKey(k, strings.NewReader(data.Private), secretID)
	if errors.Is(err, errNoPrivate) {
		return nil, errors.New("unsupported key type")
	}
	return key, err
}

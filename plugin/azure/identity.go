package azure

import (
	"net/http"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/neterr"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// credential is how the server shows who it is: by a secret, or as the machine that it runs on.
func (s *settings) credential(options policy.ClientOptions) (azcore.TokenCredential, error) {
	switch {
	case s.secret != "" && s.own:
		return s.stackCredential(options)
	case s.secret != "":
		return azidentity.NewClientSecretCredential(s.tenant, s.client, s.secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	}
	options.PerRetryPolicies = append(options.PerRetryPolicies, nobody{})
	o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if s.client != "" {
		o.ID = azidentity.ClientID(s.client)
	}
	return azidentity.NewManagedIdentityCredential(o)
}

// nobody is a policy for the service of a machine's identity: it is on the machine or on its link, and where the system
// knows that nobody is there, asking six times more, for longer than the start waits, does not help.
type nobody struct{}

func (nobody) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if neterr.Is(err, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ECONNREFUSED) {
		return nil, final{err}
	}
	return resp, err
}

// final is an error after which the library does not try again.
type final struct{ error }

// NonRetriable marks it as such.
func (final) NonRetriable() {}

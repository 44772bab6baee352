package azure

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// shortly is err, of which the libraries make a page with the whole reply if it is what Azure said.
func shortly(err error) error {
	var said *azcore.ResponseError
	var refused *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &refused) && refused.RawResponse != nil:
		return noToken(refused.RawResponse)
	case !errors.As(err, &said):
		return err
	case said.ErrorCode == "":
		return fmt.Errorf("HTTP status %d", said.StatusCode)
	}
	return fmt.Errorf("HTTP status %d: %s", said.StatusCode, said.ErrorCode)
}

// noToken is what the service of identities said (RFC 6749 §5.2), such as that a secret has expired.
func noToken(resp *http.Response) error {
	text := fmt.Sprintf("no token: HTTP status %d", resp.StatusCode)
	if r := resp.Request; r != nil && r.URL != nil {
		text = fmt.Sprintf("no token from %s: HTTP status %d", r.URL.Host, resp.StatusCode)
	}
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if body, err := runtime.Payload(resp); err != nil || json.Unmarshal(body, &said) != nil {
		return errors.New(text)
	}
	for _, s := range []string{said.Error, said.Description} {
		if s != "" {
			text += ": " + s
		}
	}
	return errors.New(text)
}

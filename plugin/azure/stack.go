package azure

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// stackCredential asks a cloud of one's own for tokens as Azure's older tools do: for a resource, at TENANT/oauth2/token.
// The libraries of today ask for scopes, and over HTTPS only. They have their turn where the cloud has no such endpoint.
type stackCredential struct {
	pipeline runtime.Pipeline
	endpoint string
	form     url.Values
	newer    azcore.TokenCredential // nil if the cloud is not asked over HTTPS
}

// stackCredential is that of a secret.
func (s *settings) stackCredential(options policy.ClientOptions) (*stackCredential, error) {
	endpoint, err := url.JoinPath(s.cloud.ActiveDirectoryAuthorityHost, s.tenant, "oauth2", "token")
	if err != nil {
		return nil, err
	}
	c := &stackCredential{
		pipeline: runtime.NewPipeline(pluginName, "", runtime.PipelineOptions{}, &options),
		endpoint: endpoint,
		form: url.Values{
			"grant_type": {"client_credentials"}, "client_id": {s.client}, "client_secret": {s.secret}, "resource": {s.resource().Audience},
		},
	}
	if strings.HasPrefix(endpoint, "https:") {
		c.newer, err = azidentity.NewClientSecretCredential(s.tenant, s.client, s.secret, &azidentity.ClientSecretCredentialOptions{
			ClientOptions: options, DisableInstanceDiscovery: true,
		})
	}
	return c, err
}

// GetToken implements azcore.TokenCredential.
func (c *stackCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (token azcore.AccessToken, err error) {
	req, err := runtime.NewRequest(ctx, http.MethodPost, c.endpoint)
	if err == nil {
		err = req.SetBody(streaming.NopCloser(strings.NewReader(c.form.Encode())), "application/x-www-form-urlencoded")
	}
	if err != nil {
		return token, err
	}
	resp, err := c.pipeline.Do(req)
	if err != nil {
		return token, err
	}
	var said struct {
		Token   string          `json:"access_token"`
		Seconds json.RawMessage `json:"expires_in"` // a number, or one in quotes
		Error   string          `json:"error"`
	}
	body, err := runtime.Payload(resp)
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && said.Token != "":
	case said.Error == "" && c.newer != nil: // there is no such endpoint
		return c.newer.GetToken(ctx, o)
	default:
		return token, noToken(resp)
	}
	seconds, err := strconv.Atoi(strings.Trim(string(said.Seconds), `"`))
	if err != nil {
		seconds = 300
	}
	return azcore.AccessToken{Token: said.Token, ExpiresOn: time.Now().Add(time.Duration(seconds) * time.Second)}, nil
}

package dnssec

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// amazon answers as the services of AWS do that lead to a secret: Secrets Manager itself, STS, and those that give
// machines and containers their roles. It is the only address that a test asks.
type amazon struct {
	*httptest.Server
	secrets  map[string]string
	fails    int32        // so many calls of Secrets Manager fail first
	calls    atomic.Int32 // of Secrets Manager
	accessID atomic.Value // of the last one
	token    atomic.Value
}

// serveAmazon starts the services and points the environment to them, without credentials and region.
func serveAmazon(t *testing.T, secrets map[string]string) *amazon {
	t.Helper()
	a := &amazon{secrets: secrets}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	for _, name := range os.Environ() {
		if name, _, _ = strings.Cut(name, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": a.URL, "AWS_ENDPOINT_URL_STS": a.URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT": a.URL,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_CONFIG_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	return a
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	credentials := func(id string) string {
		return fmt.Sprintf(`{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":"s","Token":"t","Expiration":%q}`, id, until)
	}
	switch {
	case r.Header.Get("X-Amz-Target") == "secretsmanager.GetSecretValue":
		a.secret(w, r, body)
	case strings.Contains(string(body), "Action=AssumeRoleWithWebIdentity") && strings.Contains(string(body), "WebIdentityToken=of-the-pod"):
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>POD</AccessKeyId>`+
			`<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>`+
			`</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, until)
	case r.URL.Path == "/container" && r.Header.Get("Authorization") == "of-the-task":
		io.WriteString(w, credentials("TASK"))
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		io.WriteString(w, "token")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
		io.WriteString(w, "role")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/role":
		io.WriteString(w, credentials("MACHINE"))
	case r.URL.Path == "/latest/dynamic/instance-identity/document":
		io.WriteString(w, `{"region":"eu-central-1"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// secret answers GetSecretValue.
func (a *amazon) secret(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked struct{ SecretId string } //nolint:revive // as the API has it
	json.Unmarshal(body, &asked)
	id, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), ", ")
	a.accessID.Store(id)
	a.token.Store(r.Header.Get("X-Amz-Security-Token"))
	secret, ok := a.secrets[asked.SecretId]
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	switch {
	case a.calls.Add(1) <= a.fails:
		w.WriteHeader(http.StatusInternalServerError)
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1":
		w.WriteHeader(http.StatusForbidden)
	case !ok:
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"ResourceNotFoundException","message":"no such secret"}`)
	case secret == "":
		io.WriteString(w, `{"Name":"X","SecretBinary":"AAAA"}`)
	default:
		json.NewEncoder(w).Encode(map[string]string{"Name": asked.SecretId, "SecretString": secret})
	}
}

func packSecret(key, private string) string {
	b, _ := json.Marshal(SecretKeyData{key, private})
	return string(b)
}

// setenv sets variables; file://TEXT is the path of a file with that text.
func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for name, value := range env {
		if text, ok := strings.CutPrefix(value, "file://"); ok {
			value = filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(value, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(name, value)
	}
}

// Each place that AWS' own tools know gives credentials.
func TestSecretCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		env               map[string]string
		id, token, region string
	}{
		"environment": {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}, "ENV", "", "eu-west-1"},
		"session":     {map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", "AWS_DEFAULT_REGION": "eu-west-2"}, "ENV", "t", "eu-west-2"},
		"profile": {map[string]string{"AWS_PROFILE": "dns", "AWS_SHARED_CREDENTIALS_FILE": "file://[default]\naws_access_key_id = A\naws_secret_access_key = B\n[dns]\naws_access_key_id=FILE\naws_secret_access_key = C=\n",
			"AWS_CONFIG_FILE": "file://[default]\nregion = us-east-1\n[profile dns]\nregion = eu-west-3\n"}, "FILE", "", "eu-west-3"},
		"web identity": {map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/dns", "AWS_WEB_IDENTITY_TOKEN_FILE": "file://of-the-pod",
			"AWS_REGION": "eu-north-1"}, "POD", "t", "eu-north-1"},
		"container": {map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "of-the-task",
			"AWS_REGION": "eu-south-1"}, "TASK", "t", "eu-south-1"},
		"machine":            {map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_REGION": "us-west-2"}, "MACHINE", "t", "us-west-2"},
		"region of machines": {map[string]string{"AWS_EC2_METADATA_DISABLED": "false"}, "MACHINE", "t", "eu-central-1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := serveAmazon(t, map[string]string{"good": packSecret(publicKey, privateKey)})
			if path := tc.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"]; path != "" {
				tc.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = a.URL + path
			}
			setenv(t, tc.env)
			k, err := ParseKeyFromAWSSecretsManager("good")
			if err != nil || k.tag != 39719 {
				t.Fatalf("got %v, %v", k, err)
			}
			id := fmt.Sprintf("%s/%s/%s/secretsmanager/aws4_request", tc.id, time.Now().UTC().Format("20060102"), tc.region)
			if a.accessID.Load() != id || a.token.Load() != tc.token {
				t.Errorf("asked as %v with token %q, want %s with %q", a.accessID.Load(), a.token.Load(), id, tc.token)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	a := serveAmazon(t, map[string]string{
		"good": packSecret(publicKey, privateKey), "binary": "", "text": "no JSON", "noKey": packSecret("example.org. 60 IN A 192.0.2.1", privateKey),
		"other": packSecret(otherKey, privateKey),
	})
	setenv(t, map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"})
	a.fails = 1
	if k, err := ParseKeyFromAWSSecretsManager("good"); err != nil || k.tag != 39719 || a.calls.Load() != 2 {
		t.Fatalf("got %v, %v after %d calls", k, err, a.calls.Load())
	}
	for id, want := range map[string]string{
		"none": "no such secret", "binary": "the secret holds no text", "text": "failed to unmarshal secret data", "noKey": "invalid public key format",
		"other": "not that of the public key",
	} {
		before := a.calls.Load()
		if _, err := ParseKeyFromAWSSecretsManager(id); err == nil || !strings.Contains(err.Error(), want) || a.calls.Load() != before+1 {
			t.Errorf("%s: got %v after %d calls, want %q", id, err, a.calls.Load()-before, want)
		}
	}
}

func TestSecretServiceDown(t *testing.T) {
	a := serveAmazon(t, nil)
	a.fails = 100
	setenv(t, map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"})
	if _, err := ParseKeyFromAWSSecretsManager("good"); err == nil || !strings.Contains(err.Error(), "exceeded maximum number of attempts, 3") || a.calls.Load() != 3 {
		t.Errorf("got %v after %d calls", err, a.calls.Load())
	}
}

func TestSecretWithoutCredentials(t *testing.T) {
	a := serveAmazon(t, nil)
	if _, err := ParseKeyFromAWSSecretsManager("good"); err == nil || !strings.Contains(err.Error(), "no AWS region: set AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	setenv(t, map[string]string{"AWS_REGION": "eu-west-1"})
	if _, err := ParseKeyFromAWSSecretsManager("good"); err == nil || !strings.Contains(err.Error(), "credentials") || a.calls.Load() != 0 {
		t.Errorf("without credentials: %v after %d calls", err, a.calls.Load())
	}
}

package dnssec

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const (
	publicKey  = "example.org. IN DNSKEY 257 3 13 EqABt5vxS3zaxKFP8kGc/iiph1vTH7ZdNQrOSyTvcbEgEOl0un7CFHp+ KLC22WKGYhgNcKlIQMlooRuNAfOaIw==\n"
	otherKey   = "example.org. IN DNSKEY 257 3 13 qMbcWCDMg5nOT+ZW5jik2KLa8cjzfhW4YFCPH+0HDtsglQ8ps3Wcy1bX 3ub+EfxMplHI1QQnTTUowxYREv3ktQ==\n"
	privateKey = "Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: PI7Y7cQjjI1nfTINzsT9oCx/7qoCrgGE+kYLtoFaOds=\n"
)

// folder has keys in files.
func folder(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.key": publicKey, "good.private": privateKey,
		"half.key":      publicKey,
		"other.key":     otherKey,
		"other.private": privateKey,
		"noKey.key":     "example.org. 60 IN A 192.0.2.1\n", "noKey.private": privateKey,
		"noPrivate.key": publicKey, "noPrivate.private": "nothing\n",
		"cluster.key": strings.Replace(publicKey, "example.org", "cluster.local", 1), "cluster.private": privateKey,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSetup(t *testing.T) {
	dir := folder(t)
	for _, tc := range []struct {
		input   string
		zones   string
		keys    int
		compact bool
		err     string
	}{
		{"dnssec", "example.com.", 0, false, ""},
		{"dnssec example.org", "example.org.", 0, false, ""},
		{"dnssec 10.0.0.0/8", "10.in-addr.arpa.", 0, false, ""},
		{"dnssec example.org {\ncache_capacity 100\n}", "example.org.", 0, false, ""},
		{"dnssec example.org {\nkey file good\n}", "example.org.", 1, false, ""},
		{"dnssec example.org {\nkey file good.key good.private\nkey file " + dir + "/good\ndenial compact\n}", "example.org.", 3, true, ""},
		{"dnssec a.example.org {\nkey file good\ndenial blacklies\n}", "a.example.org.", 1, false, ""},
		{"dnssec example.org cluster.local {\nkey file cluster\n}", "example.org. cluster.local.", 1, false, ""},
		{"dnssec example.org {\nkey file cluster\n}", "", 0, false, "key cluster.local. (keyid: 39719) can not sign any of the zones"},
		{"dnssec org {\nkey file good\n}", "", 0, false, "can not sign any of the zones"},
		{"dnssec example.org {\nkey\n}", "", 0, false, "Wrong argument count or unexpected line ending after 'key'"},
		{"dnssec example.org {\nkey file\n}", "", 0, false, "Wrong argument count or unexpected line ending after 'file'"},
		{"dnssec example.org {\nkey disk good\n}", "", 0, false, `unknown source of keys "disk"`},
		{"dnssec example.org {\nkey file nowhere\n}", "", 0, false, "open " + dir + "/nowhere.key: no such file or directory"},
		{"dnssec example.org {\nkey file half\n}", "", 0, false, "open " + dir + "/half.private: no such file or directory"},
		{"dnssec example.org {\nkey file noKey\n}", "", 0, false, "no public key found"},
		{"dnssec example.org {\nkey file noPrivate\n}", "", 0, false, "plugin/dnssec: Testfile:2 - Error during parsing: "},
		{"dnssec example.org {\nkey file other\n}", "", 0, false, "(keyid: 40352): the private key is not that of the public key"},
		{"dnssec example.org {\ncache_capacity many\n}", "", 0, false, `strconv.Atoi: parsing "many": invalid syntax`},
		{"dnssec example.org {\ncache_capacity\n}", "", 0, false, "Wrong argument count"},
		{"dnssec example.org {\ndenial nsec3\n}", "", 0, false, "denial"},
		{"dnssec example.org {\nsign\n}", "", 0, false, "unknown property 'sign'"},
		{"dnssec example..org", "", 0, false, `invalid zone "example..org"`},
		{"dnssec\ndnssec", "", 0, false, "this plugin can only be used once per Server Block"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"example.com"}
		dnsserver.GetConfig(c).Root = dir
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.HasPrefix(err.Error(), "plugin/dnssec: ")) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err != nil || tc.err != "" {
			continue
		}
		d := dnsserver.GetConfig(c).Plugin[0](nil).(Dnssec)
		if strings.Join(d.zones, " ") != tc.zones || len(d.keys.all) != tc.keys || d.compact != tc.compact {
			t.Errorf("%q: got %v, %d keys, compact %t", tc.input, d.zones, len(d.keys.all), d.compact)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// aws answers as AWS Secrets Manager does; fails is how many attempts fail before.
func aws(t *testing.T, secrets map[string]string, fails int) *int {
	t.Helper()
	attempts := new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*attempts++
		body, _ := io.ReadAll(r.Body)
		var asked struct{ SecretId string } //nolint:revive // as the API has it
		json.Unmarshal(body, &asked)
		secret, ok := secrets[asked.SecretId]
		switch {
		case *attempts <= fails:
			w.WriteHeader(http.StatusInternalServerError)
		case r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" ||
			!strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=EXAMPLE/") || r.Header.Get("Content-Type") != "application/x-amz-json-1.1":
			w.WriteHeader(http.StatusForbidden)
		case !ok:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"ResourceNotFoundException","message":"no such secret"}`)
		case secret == "":
			io.WriteString(w, `{"Name":"X","SecretBinary":"AAAA"}`)
		default:
			json.NewEncoder(w).Encode(map[string]string{"Name": asked.SecretId, "SecretString": secret})
		}
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": s.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "EXAMPLE", "AWS_SECRET_ACCESS_KEY": "example",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": "", "AWS_SESSION_TOKEN": "", "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_CONFIG_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
	return attempts
}

func TestSecrets(t *testing.T) {
	pack := func(key, private string) string {
		b, _ := json.Marshal(SecretKeyData{key, private})
		return string(b)
	}
	attempts := aws(t, map[string]string{
		"good": pack(publicKey, privateKey), "binary": "", "text": "no JSON", "noKey": pack("example.org. 60 IN A 192.0.2.1", privateKey),
		"other": pack(otherKey, privateKey),
	}, 1)
	k, err := ParseKeyFromAWSSecretsManager("good")
	if err != nil || k.tag != 39719 || *attempts != 2 {
		t.Fatalf("got %v, %v after %d attempts", k, err, *attempts)
	}
	for id, want := range map[string]string{
		"none": "no such secret", "binary": "the secret holds no text", "text": "failed to unmarshal secret data", "noKey": "invalid public key format",
		"other": "not that of the public key",
	} {
		*attempts = 1
		if _, err := ParseKeyFromAWSSecretsManager(id); err == nil || !strings.Contains(err.Error(), want) || *attempts != 2 {
			t.Errorf("%s: got %v after %d attempts, want %q", id, err, *attempts-1, want)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if _, err := ParseKeyFromAWSSecretsManager("good"); err == nil || !strings.Contains(err.Error(), "no AWS credentials") {
		t.Errorf("without credentials: %v", err)
	}
}

func TestSecretServiceDown(t *testing.T) {
	attempts := aws(t, nil, 100)
	if _, err := ParseKeyFromAWSSecretsManager("good"); err == nil || !strings.Contains(err.Error(), "attempt 3 of 3") || *attempts != 3 {
		t.Errorf("got %v after %d attempts", err, *attempts)
	}
}

func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"credentials": "# keys\n[default]\naws_access_key_id = A\n[dns]\naws_access_key_id=B\naws_secret_access_key = C=\n",
		"config":      "[default]\nregion = us-east-1\n[profile dns]\nregion = eu-west-1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "credentials"), "AWS_CONFIG_FILE": filepath.Join(dir, "config"), "AWS_PROFILE": "dns",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_SECRETS_MANAGER": ""} {
		t.Setenv(name, value)
	}
	e, err := readAWSEnvironment()
	if want := (awsEnvironment{"eu-west-1", "https://secretsmanager.eu-west-1.amazonaws.com", "B", "C=", ""}); err != nil || e != want {
		t.Errorf("got %v, %v", e, err)
	}
}

// The signature is that which the steps of AWS' description of Signature Version 4 lead to; it covers all of the request.
func TestSignatureVersion4(t *testing.T) {
	e := awsEnvironment{region: "us-east-1", id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	sign := func(e awsEnvironment, body, target string, at time.Time) string {
		req := httptest.NewRequest(http.MethodPost, "https://secretsmanager.us-east-1.amazonaws.com/", nil)
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
		req.Header.Set("X-Amz-Target", target)
		e.sign(req, []byte(body), "secretsmanager", at)
		return req.Header.Get("Authorization")
	}
	base := sign(e, "{}", "t", at)
	if !strings.HasPrefix(base, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/secretsmanager/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=") {
		t.Errorf("got %s", base)
	}
	other := e
	other.secret += "x"
	session := e
	session.token = "token"
	for what, got := range map[string]string{"body": sign(e, "{ }", "t", at), "target": sign(e, "{}", "u", at), "time": sign(e, "{}", "t", at.Add(time.Second)),
		"secret": sign(other, "{}", "t", at), "token": sign(session, "{}", "t", at)} {
		if got == base {
			t.Errorf("%s does not count", what)
		}
	}
}

func TestKeyFile(t *testing.T) {
	dir := folder(t)
	k, err := ParseKeyFile(filepath.Join(dir, "good.key"), filepath.Join(dir, "good.private"))
	if err != nil || k.K.Hdr.Ttl != 3600 || k.D.KeyTag != 39719 || k.D.DigestType != dns.SHA256 {
		t.Errorf("got %v, %v", k, err)
	}
}

package dnssec

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The part of AWS Secrets Manager's API that keys need: one call, GetSecretValue, in the protocol "AWS JSON 1.1", signed with Signature Version 4.

// awsEnvironment is which account is used, and where.
type awsEnvironment struct {
	region   string
	endpoint string
	id       string // of the access key
	secret   string
	token    string // of a session, "" if there is none
}

// readAWSEnvironment looks at the environment variables, and then at the files and the profile that they name, as the AWS CLI does.
func readAWSEnvironment() (awsEnvironment, error) {
	home, _ := os.UserHomeDir()
	profile := cmp.Or(os.Getenv("AWS_PROFILE"), "default")
	credentials := readProfile(cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")), profile)
	configName := profile
	if profile != "default" {
		configName = "profile " + profile
	}
	config := readProfile(cmp.Or(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")), configName)
	e := awsEnvironment{
		region:   cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), config["region"]),
		endpoint: cmp.Or(os.Getenv("AWS_ENDPOINT_URL_SECRETS_MANAGER"), os.Getenv("AWS_ENDPOINT_URL"), config["endpoint_url"]),
		id:       os.Getenv("AWS_ACCESS_KEY_ID"), secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), token: os.Getenv("AWS_SESSION_TOKEN"),
	}
	for _, p := range []map[string]string{credentials, config} {
		if e.id == "" || e.secret == "" {
			e.id, e.secret, e.token = p["aws_access_key_id"], p["aws_secret_access_key"], p["aws_session_token"]
		}
	}
	switch {
	case e.id == "" || e.secret == "":
		return e, errors.New("no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or have them in the shared credentials file")
	case e.region == "":
		return e, errors.New("no AWS region: set AWS_REGION")
	}
	e.endpoint = cmp.Or(e.endpoint, "https://secretsmanager."+e.region+".amazonaws.com")
	return e, nil
}

// readProfile is the settings of one section of a file in AWS' form; none if there is no such file.
func readProfile(file, section string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	settings, here := map[string]string{}, false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			here = strings.TrimSpace(strings.TrimSuffix(name, "]")) == section
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok && here && !strings.HasPrefix(line, "#") {
			settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return settings
}

const awsAttempts = 3

// errPermanent is what another attempt does not change.
var errPermanent = errors.New("refused")

// fetchSecret is the text of a secret. Failures of the network and of the service are tried again.
func fetchSecret(ctx context.Context, id string) (text string, err error) {
	e, err := readAWSEnvironment()
	if err != nil {
		return "", err
	}
	for attempt := 1; ; attempt++ {
		text, err = e.getSecretValue(ctx, id, time.Now())
		if err == nil {
			return text, nil
		}
		if errors.Is(err, errPermanent) || attempt == awsAttempts || ctx.Err() != nil {
			return "", fmt.Errorf("operation error Secrets Manager: GetSecretValue of %s, attempt %d of %d: %w", id, attempt, awsAttempts, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(attempt) * 200 * time.Millisecond):
		}
	}
}

// getSecretValue makes one attempt.
func (e *awsEnvironment) getSecretValue(ctx context.Context, id string, now time.Time) (string, error) {
	body, err := json.Marshal(map[string]string{"SecretId": id})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.endpoint, "/")+"/", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPermanent, err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	e.sign(req, body, "secretsmanager", now)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	return secretOf(resp.StatusCode, reply)
}

// secretOf reads what the service said.
func secretOf(status int, reply []byte) (string, error) {
	var said struct {
		SecretString *string
		Type         string `json:"__type"`
		Message      string `json:"message"`
	}
	jsonErr := json.Unmarshal(reply, &said)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || strings.Contains(said.Type, "Throttling"):
		return "", fmt.Errorf("status %d: %s %s", status, said.Type, said.Message)
	case status != http.StatusOK:
		return "", fmt.Errorf("%w: status %d: %s %s", errPermanent, status, said.Type, said.Message)
	case jsonErr != nil:
		return "", fmt.Errorf("%w: reply: %w", errPermanent, jsonErr)
	case said.SecretString == nil:
		return "", fmt.Errorf("%w: the secret holds no text", errPermanent)
	}
	return *said.SecretString, nil
}

// sign adds the headers of Signature Version 4 to a request without a query string whose path is as it is to be signed.
func (e *awsEnvironment) sign(req *http.Request, body []byte, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	day := stamp[:8]
	req.Header.Set("X-Amz-Date", stamp)
	names := []string{"content-type", "host", "x-amz-date"} // in order
	if e.token != "" {
		req.Header.Set("X-Amz-Security-Token", e.token)
		names = append(names, "x-amz-security-token")
	}
	names = append(names, "x-amz-target")
	var canonical strings.Builder
	path := cmp.Or(req.URL.EscapedPath(), "/")
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", req.Method, path, req.URL.RawQuery)
	for _, name := range names {
		value := req.Header.Get(name)
		if name == "host" {
			value = req.URL.Host
		}
		fmt.Fprintf(&canonical, "%s:%s\n", name, strings.TrimSpace(value))
	}
	signed := strings.Join(names, ";")
	fmt.Fprintf(&canonical, "\n%s\n%s", signed, hexHash(body))

	scope := day + "/" + e.region + "/" + service + "/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hexHash([]byte(canonical.String()))
	key := []byte("AWS4" + e.secret)
	for _, part := range []string{day, e.region, service, "aws4_request"} {
		key = mac(key, part)
	}
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		e.id, scope, signed, hex.EncodeToString(mac(key, toSign))))
}

func hexHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

package dnssec

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// fetchSecret is the text of a secret of AWS Secrets Manager. Account, region and endpoint come from where AWS' own
// tools have them: environment, shared files with their profiles, single sign-on, web identity (IRSA), container and
// instance roles.
func fetchSecret(ctx context.Context, id string) (string, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the configuration of AWS: %w", err)
	}
	if cfg.Region == "" {
		if cfg.Region, err = instanceRegion(ctx, cfg); err != nil {
			return "", fmt.Errorf("no AWS region: set AWS_REGION: %w", err)
		}
	}
	out, err := secretsmanager.NewFromConfig(cfg).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)})
	switch {
	case err != nil:
		return "", err
	case out.SecretString == nil:
		return "", errors.New("the secret holds no text")
	}
	return *out.SecretString, nil
}

// instanceRegion is the region of the machine that the server runs on.
func instanceRegion(ctx context.Context, cfg aws.Config) (string, error) {
	out, err := imds.NewFromConfig(cfg).GetRegion(ctx, new(imds.GetRegionInput))
	if err != nil {
		return "", err
	}
	return out.Region, nil
}

package azure

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
)

// stack is the name of an environment of one's own, which a file describes.
const stack = "AZURESTACKCLOUD"

// cloudNamed is where the environment of a name has its API.
func cloudNamed(name string) (cloud.Configuration, error) {
	switch strings.ToUpper(name) {
	case "", "AZURECLOUD", "AZUREPUBLICCLOUD":
		return cloud.AzurePublic, nil
	case "AZURECHINACLOUD":
		return cloud.AzureChina, nil
	case "AZUREUSGOVERNMENT", "AZUREUSGOVERNMENTCLOUD":
		return cloud.AzureGovernment, nil
	case "AZUREGERMANCLOUD":
		return configuration("https://login.microsoftonline.de/", "https://management.microsoftazure.de/", "https://management.core.cloudapi.de/"), nil
	case stack:
		return cloudFromFile(os.Getenv("AZURE_ENVIRONMENT_FILEPATH"))
	}
	return cloud.Configuration{}, fmt.Errorf("autorest/azure: There is no cloud environment matching the name %q", strings.ToUpper(name))
}

func configuration(login, manager, audience string) cloud.Configuration {
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: login,
		Services:                     map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: strings.TrimSuffix(manager, "/"), Audience: audience}},
	}
}

// cloudFromFile reads an environment in the form of Azure's older tools.
func cloudFromFile(path string) (cloud.Configuration, error) {
	if path == "" {
		return cloud.Configuration{}, errors.New("AZURE_ENVIRONMENT_FILEPATH does not name the file of the environment " + stack)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return cloud.Configuration{}, err
	}
	var e struct {
		ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`
		ResourceManagerEndpoint string `json:"resourceManagerEndpoint"`
		TokenAudience           string `json:"tokenAudience"`
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return cloud.Configuration{}, fmt.Errorf("%s: %w", path, err)
	}
	if e.ActiveDirectoryEndpoint == "" || e.ResourceManagerEndpoint == "" {
		return cloud.Configuration{}, fmt.Errorf("%s: activeDirectoryEndpoint and resourceManagerEndpoint are needed", path)
	}
	if e.TokenAudience == "" {
		e.TokenAudience = e.ResourceManagerEndpoint
	}
	return configuration(e.ActiveDirectoryEndpoint, e.ResourceManagerEndpoint, e.TokenAudience), nil
}

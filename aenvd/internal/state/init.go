package state

import (
	"errors"
	"maps"
	"time"

	"aenvd/internal/machine"
)

// InitRequest is the body of POST /init: E2B's fields, then ours. Absent fields leave things as they are.
type InitRequest struct {
	// EnvVars replace those of an earlier request.
	EnvVars     map[string]string `json:"envVars"`
	AccessToken *string           `json:"accessToken"`
	// Timestamp sets the clock.
	Timestamp      *time.Time `json:"timestamp"`
	DefaultUser    *string    `json:"defaultUser"`
	DefaultWorkdir *string    `json:"defaultWorkdir"`
	CABundle       string     `json:"caBundle"`

	Hostname   string `json:"hostname"`
	SandboxID  string `json:"sandboxId"`
	TemplateID string `json:"templateId"`
	// Entropy is base64 in JSON.
	Entropy   []byte `json:"entropy"`
	MachineID string `json:"machineId"`
	// InitKey is the secret that later requests prove themselves with.
	InitKey string `json:"initKey"`
	// DropStreams is for the server, which knows the connections; Apply does nothing about it.
	DropStreams bool `json:"dropStreams"`
}

// Apply takes over a request that the caller has authorised. With ownsMachine it changes the machine too; a plain
// process does not. What fails is reported, after everything else was done.
func (s *State) Apply(request InitRequest, ownsMachine bool) error {
	becameAnother := s.store(request)
	if !ownsMachine {
		return nil
	}
	root := machine.Root("/")
	var errs []error
	if request.Timestamp != nil {
		errs = append(errs, machine.SetClock(*request.Timestamp))
	}
	errs = append(errs, machine.AddEntropy(request.Entropy))
	if becameAnother {
		errs = append(errs, machine.NewBootID())
	}
	if request.Hostname != "" {
		errs = append(errs, root.SetHostname(request.Hostname))
	}
	if request.MachineID != "" {
		errs = append(errs, root.SetMachineID(request.MachineID))
	}
	if request.SandboxID != "" || request.TemplateID != "" {
		errs = append(errs, root.WriteIdentity(request.SandboxID, request.TemplateID))
	}
	if request.CABundle != "" {
		errs = append(errs, root.TrustCertificates(request.CABundle))
	}
	return errors.Join(errs...)
}

// store tells whether the machine is another sandbox now: a copy of the one that it was.
func (s *State) store(request InitRequest) (becameAnother bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request.EnvVars != nil {
		s.envVars = maps.Clone(request.EnvVars)
	}
	if request.AccessToken != nil {
		s.accessToken = *request.AccessToken
	}
	if request.DefaultUser != nil && *request.DefaultUser != "" {
		s.user = *request.DefaultUser
	}
	if request.DefaultWorkdir != nil {
		s.workdir = *request.DefaultWorkdir
	}
	if request.InitKey != "" {
		s.initKey = request.InitKey
	}
	if request.SandboxID != "" {
		before := s.injected["E2B_SANDBOX_ID"]
		becameAnother = before != "" && before != request.SandboxID
		s.injected["E2B_SANDBOX_ID"] = request.SandboxID
	}
	if request.TemplateID != "" {
		s.injected["E2B_TEMPLATE_ID"] = request.TemplateID
	}
	return becameAnother
}

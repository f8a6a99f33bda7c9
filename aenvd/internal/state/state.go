// Package state holds what the host has told this guest about itself, and checks who may ask for what.
package state

import (
	"crypto/subtle"
	"maps"
	"sync"

	"aenvd/internal/users"
)

// State is safe for use by several goroutines.
type State struct {
	mu          sync.RWMutex
	accessToken string
	initKey     string
	envVars     map[string]string
	injected    map[string]string
	user        string
	workdir     string
}

// New returns the state of a guest that was told nothing yet: no token, root.
func New() *State {
	return &State{user: "root", envVars: map[string]string{}, injected: map[string]string{"E2B_SANDBOX": "true"}}
}

// AccessToken is what clients have to send; empty when everybody may come in.
func (s *State) AccessToken() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.accessToken
}

// TokenMatches compares in constant time. Without a token to compare with, everything matches.
func (s *State) TokenMatches(token string) bool {
	want := s.AccessToken()
	return want == "" || equal(token, want)
}

// InitKeyMatches tells whether key is the host's. Before there is one, false.
func (s *State) InitKeyMatches(key string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.initKey != "" && equal(key, s.initKey)
}

// HasInitKey tells whether the host has claimed this guest.
func (s *State) HasInitKey() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.initKey != ""
}

// Defaults are the user and the directory of requests that name none.
func (s *State) Defaults() (user, workdir string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.user, s.workdir
}

// LookupUser finds the user that a request names, or the default one.
func (s *State) LookupUser(name string) (users.User, error) {
	if name == "" {
		name, _ = s.Defaults()
	}
	return users.Lookup(name)
}

// EnvVars are the variables that the host set.
func (s *State) EnvVars() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.envVars)
}

// ProcessEnv are the variables that every process gets: the sandbox's identity, then what the host set.
func (s *State) ProcessEnv() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	merged := maps.Clone(s.injected)
	maps.Copy(merged, s.envVars)
	return merged
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

package files

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"aenvd/internal/httperr"
	"aenvd/internal/users"
)

// composeRequest is the body of POST /files/compose.
type composeRequest struct {
	SourcePaths []string `json:"source_paths"`
	Destination string   `json:"destination"`
	Username    string   `json:"username"`
}

const maxComposeBody = 1 << 20

// Compose answers POST /files/compose: it joins files into one that appears at once, and removes the pieces.
func (t *Transfer) Compose(w http.ResponseWriter, r *http.Request) {
	var request composeRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxComposeBody)).Decode(&request); err != nil {
		httperr.Write(w, httperr.New(http.StatusBadRequest, "the body is not what /files/compose takes: %v", err))
		return
	}
	written, err := t.compose(request)
	if err != nil {
		httperr.Write(w, spaceError(request.Destination, err))
		return
	}
	httperr.JSON(w, http.StatusOK, written)
}

func (t *Transfer) compose(request composeRequest) (Written, error) {
	if len(request.SourcePaths) == 0 || request.Destination == "" {
		return Written{}, httperr.New(http.StatusBadRequest, "source_paths and destination are needed")
	}
	user, destination, err := t.resolve(request.Username, request.Destination)
	if err != nil {
		return Written{}, err
	}
	sources := make([]string, 0, len(request.SourcePaths))
	for _, path := range request.SourcePaths {
		_, source, err := t.resolve(request.Username, path)
		if err != nil {
			return Written{}, err
		}
		sources = append(sources, source)
	}
	if slices.Contains(sources, destination) {
		return Written{}, httperr.New(http.StatusBadRequest, "'%s' is a source and the destination", destination)
	}
	if err := join(sources, destination, user); err != nil {
		return Written{}, err
	}
	for _, source := range sources {
		if err := os.Remove(source); err != nil && !os.IsNotExist(err) {
			return Written{}, err
		}
	}
	return Written{Name: filepath.Base(destination), Path: destination, Type: "file"}, nil
}

func join(sources []string, destination string, user users.User) (err error) {
	if err := makeDirs(filepath.Dir(destination), user); err != nil {
		return parentError(destination, err)
	}
	if info, err := os.Stat(destination); err == nil && !info.Mode().IsRegular() {
		return notRegular(destination, info)
	}
	temporary, err := os.CreateTemp(filepath.Dir(destination), ".compose-*")
	if err != nil {
		return err
	}
	defer func() {
		temporary.Close()
		if err != nil {
			os.Remove(temporary.Name())
		}
	}()
	for _, source := range sources {
		if err := appendFile(temporary, source); err != nil {
			return err
		}
	}
	if err := temporary.Chmod(0o644); err != nil {
		return err
	}
	if err := chown(temporary.Name(), user); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), destination)
}

func appendFile(to *os.File, path string) error {
	file, _, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

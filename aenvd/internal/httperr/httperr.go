// Package httperr writes the error bodies of the endpoints that are plain HTTP.
package httperr

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error is an HTTP status with a message for the client.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// New words an error.
func New(status int, format string, args ...any) *Error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// Write answers with err; what is no *Error is a 500.
func Write(w http.ResponseWriter, err error) {
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{http.StatusInternalServerError, err.Error()}
	}
	JSON(w, known.Status, map[string]any{"code": known.Status, "message": known.Message})
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone
}

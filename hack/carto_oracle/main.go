// Evaluate JSONPaths as Cartographer does, with client-go and without missing keys, to compare ours with.
//
// Each line of the input is {"object": ..., "path": ...}; each line of the output is {"results": [...]} or {"error": ...}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

type question struct {
	Object json.RawMessage `json:"object"`
	Path   string          `json:"path"`
}

type answer struct {
	Results []any  `json:"results"`
	Error   string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "carto_oracle:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	questions := json.NewDecoder(bufio.NewReader(in))
	answers := json.NewEncoder(out)
	for {
		var asked question
		if err := questions.Decode(&asked); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		results, err := evaluate(asked)
		given := answer{Results: results}
		if err != nil {
			given = answer{Error: err.Error()}
		}
		if err := answers.Encode(given); err != nil {
			return err
		}
	}
}

func evaluate(asked question) (results []any, err error) {
	// client-go panics on some paths that it parses.
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	var object any
	// Integers stay integers, as in an unstructured object.
	if err := kjson.Unmarshal(asked.Object, &object); err != nil {
		return nil, err
	}
	parsed := jsonpath.New("").AllowMissingKeys(false)
	if err := parsed.Parse(wrapped(asked.Path)); err != nil {
		return nil, err
	}
	found, err := parsed.FindResults(object)
	if err != nil {
		return nil, err
	}
	results = []any{}
	for _, group := range found {
		for _, value := range group {
			results = append(results, value.Interface())
		}
	}
	return results, nil
}

func wrapped(path string) string {
	if !strings.HasPrefix(path, "{.") {
		if strings.HasPrefix(path, ".") {
			path = "{" + path
		} else {
			path = "{." + path
		}
	}
	if !strings.HasSuffix(path, "}") {
		path += "}"
	}
	return path
}

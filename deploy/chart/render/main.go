// Renders the templates of a chart for deploy/check-chart.ts where there is no helm: by the template engine and the functions that
// helm uses (text/template and sprig), of Debian's packages golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev.
// Of helm's own functions it has those that the chart uses. It does not check values against values.schema.json, and installs nothing.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run ./deploy/chart/render CHART < data.json
//
// Input: what helm calls the built-in objects, as JSON. Output: the files in templates/ one after the other, as JSON.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	rendered, err := render(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(rendered)
}

func render(chart string) (map[string]string, error) {
	var data map[string]interface{}
	if err := json.NewDecoder(os.Stdin).Decode(&data); err != nil {
		return nil, err
	}
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(why)
		}
		return value, nil
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	rendered := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, name, data); err != nil {
			return nil, err
		}
		// As helm does with what is not there.
		rendered[name] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	return rendered, nil
}

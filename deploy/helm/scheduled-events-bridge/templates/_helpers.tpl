{{- define "bridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "bridge.fullname" -}}
{{- $name := include "bridge.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bridge.selector" -}}
app.kubernetes.io/name: {{ include "bridge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bridge.labels" -}}
{{ include "bridge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "bridge.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* The configuration, with what the chart itself needs of it. */ -}}
{{- define "bridge.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $source := default dict (get $config "source") -}}
{{- $labels := merge (default dict (get $source "labels")) (dict "node" "${NODE_NAME}") -}}
{{- $_ := set $source "labels" $labels -}}
{{- if .Values.simulator.enabled -}}
{{- $_ := set $source "endpoint" "http://127.0.0.1:8081" -}}
{{- end -}}
{{- $_ := set $config "source" $source -}}
{{- $http := default dict (get $config "http") -}}
{{- $_ := set $http "probes_listen" (printf "0.0.0.0:%d" (int .Values.probes.port)) -}}
{{- $_ := set $config "http" $http -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "bridge.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

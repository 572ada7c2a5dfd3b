{{- define "quittance.labels" -}}
app.kubernetes.io/name: quittance
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

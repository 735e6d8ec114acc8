{{/* Labels for selecting pods in policies. KubeRay reserves app.kubernetes.io/name. Takes root and part. */}}
{{- define "raydex.labels" -}}
app.kubernetes.io/part-of: raydex
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* A container that runs the image. Takes root, name, cpu, memory, gpus. */}}
{{- define "raydex.container" -}}
name: {{ .name }}
image: {{ .root.Values.image | quote }}
securityContext: {{ toJson .root.Values.containerSecurityContext }}
{{- $size := dict "cpu" .cpu "memory" .memory }}
{{- with .gpus }}{{ $_ := set $size "nvidia.com/gpu" (toString .) }}{{ end }}
resources: {{ dict "requests" $size "limits" $size | toJson }}
{{- end }}

{{/* The pod of a Ray node. Takes root, part, kind (head or worker) and size. */}}
{{- define "raydex.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels: {{- include "raydex.labels" . | nindent 4 }}
  annotations: # a changed secret creates a new cluster
    raydex/secret: {{ dict "url" $values.database.url "secrets" $values.secrets | toJson | sha256sum | trunc 16 }}
spec:
  imagePullSecrets: {{ toJson $values.imagePullSecrets }}
  nodeSelector: {{ toJson (.size.nodeSelector | default dict) }}
  tolerations: {{ toJson (.size.tolerations | default list) }}
  terminationGracePeriodSeconds: 60
  {{- if eq .kind "worker" }}
  automountServiceAccountToken: false # the head's autoscaler needs a token, a worker does not
  {{- if eq .part "serve" }}
  topologySpreadConstraints:
    - topologyKey: kubernetes.io/hostname
      maxSkew: 1
      whenUnsatisfiable: {{ $values.service.spread }}
      {{- if and (eq $values.service.spread "DoNotSchedule") (gt (int $values.service.minReplicas) 1) }}
      minDomains: 2
      {{- end }}
      labelSelector:
        matchLabels: {{- include "raydex.labels" . | nindent 10 }}
          ray.io/node-type: worker
      matchLabelKeys: [ray.io/cluster] # the new cluster of an upgrade may share nodes with the old one
  {{- end }}
  {{- end }}
  securityContext: {{ toJson $values.podSecurityContext }}
  volumes:
    - name: collections
      configMap: {name: {{ .root.Release.Name }}-collections, optional: true}
    - name: home
      {{- if $values.home.claim }}
      persistentVolumeClaim: {claimName: {{ $values.home.claim }}}
      {{- else }}
      emptyDir: {sizeLimit: {{ $values.home.sizeLimit | quote }}}
      {{- end }}
  containers:
    - {{- include "raydex.container" (merge (dict "root" .root "name" (printf "ray-%s" .kind)) .size) | nindent 6 }}
      volumeMounts:
        - {name: collections, mountPath: /collections, readOnly: true}
        - {name: home, mountPath: {{ $values.home.path | quote }}}
      {{- if and (eq .kind "worker") (eq .part "serve") }}
      ports:
        - {name: serve, containerPort: 8000}
      readinessProbe: # KubeRay's default makes the same request with wget, which an image may lack; it adds the other probes
        httpGet: {path: /-/healthz, port: 8000}
        periodSeconds: 5
        timeoutSeconds: 2
        failureThreshold: 2
      lifecycle:
        preStop: # traffic moves to other pods before the replica ends
          exec: {command: [sleep, "15"]}
      {{- end }}
      envFrom: # optional: with CloudNativePG and no other secrets it does not exist
        - secretRef:
            name: {{ $values.existingSecret | default .root.Release.Name }}
            optional: {{ $values.database.cloudnativepg.enabled }}
      env:
        - {name: RAY_USAGE_STATS_ENABLED, value: "0"}
        - {name: RAYDEX_HOME, value: {{ $values.home.path | quote }}}
        # As in deploy/start-cluster: a dying replica causes a 503, and a killed node is detected within a second.
        - {name: RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH, value: "serve.proxy:middlewares"}
        - {name: RAY_health_check_period_ms, value: "300"}
        - {name: RAY_agent_register_timeout_ms, value: "120000"}
        - {name: RAY_health_check_failure_threshold, value: "3"}
        {{- if $values.database.cloudnativepg.enabled }}
        - name: DATABASE_URL
          valueFrom: {secretKeyRef: {name: {{ .root.Release.Name }}-db-app, key: uri}}
        {{- end }}
        {{- range $name, $value := $values.env }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
{{- end }}

{{/* A Ray cluster. Takes root, part and groups: name → size with min and max. */}}
{{- define "raydex.cluster" -}}
rayVersion: {{ .root.Values.rayVersion | quote }}
enableInTreeAutoscaling: true
authOptions: {mode: token} # the operator creates the token and passes it to every pod
headGroupSpec:
  rayStartParams: {num-cpus: "0"} # runs only the driver
  template: {{- include "raydex.pod" (merge (dict "kind" "head" "size" .root.Values.head) .) | nindent 4 }}
workerGroupSpecs:
  {{- range $name, $size := .groups }}
  {{- if $size.max }}
  - groupName: {{ $name }}
    replicas: {{ $size.min }}
    minReplicas: {{ $size.min }}
    maxReplicas: {{ $size.max }}
    rayStartParams: {}
    template: {{- include "raydex.pod" (merge (dict "kind" "worker" "size" $size) $) | nindent 6 }}
  {{- end }}
  {{- end }}
{{- end }}

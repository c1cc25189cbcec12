// docs/reference/configuration.md, from the settings that the service checks.
import type { describeModels, SettingRow } from '@oxbow/server'

export function configurationPage(
  rows: readonly SettingRow[],
  models: ReturnType<typeof describeModels>,
  mcp: ReturnType<typeof describeModels>,
): string {
  const table = rows.map((it) => {
    const others = Object.entries(it.inProfile).map(
      ([profile, value]) => `${profile}: ${value === undefined ? 'required' : shown(value)}`,
    )
    const defaults = [it.default === undefined ? '–' : shown(it.default), ...others].join('; ')
    return `| \`${it.key}\` | \`${it.variable}\` | ${defaults} | ${it.description} Allowed: ${it.allowed}. |`
  })
  return `# Configuration

<!-- Written by "npm run generate" from packages/server/src/config/schema.ts. Do not edit. -->

Settings come from, each over the one before: the defaults of the profile, \`oxbow.toml\` in the current directory (or the file
that \`OXBOW_CONFIG\` names), the environment, the command line. They are checked once, at the start; every mistake is told with its
key, what was given, and what is allowed.

\`OXBOW_PROFILE\` is \`local\` (default), \`test\` or \`prod\`. In \`prod\` a language model, a store and an identity must be configured.

\`\`\`toml
model = "openai:gpt-5-mini"

[server]
port = 9000

[agent]
maxSteps = 6
totalTimeout = "5m"
\`\`\`

\`\${NAME}\` in a text is replaced by the environment variable of that name; a missing one is an error.

| key | variable | default | |
|---|---|---|---|
${table.join('\n')}

## Models

Without any of this the environment decides: \`OXBOW_MODEL\`, else the first provider whose key is set, else the offline model.
With it models have names, and purposes have models:

\`\`\`toml
[models.aliases]
default = "main"
fast = "small"

[models.main]
provider = "openai"
model = "gpt-5"
timeouts = { firstByte = "2m" }
limits = { concurrency = 20, requestsPerMinute = 500 }
fallbacks = ["small", { model = "local", weight = 2 }]

[models.small]
provider = "deepseek"
keyVariable = "TEAM_DEEPSEEK_KEY"

[models.local]
provider = "vllm"
model = "qwen3:8b"
baseUrl = "http://gpu:8000/v1"
price = { input = 0, output = 0 }
\`\`\`

| key | |
|---|---|
${models.map((it) => `| \`${it.key}\` | ${it.description} Allowed: ${it.allowed}. |`).join('\n')}

Keys stand in the environment, never in the file: \`OPENAI_API_KEY\`, \`DEEPSEEK_API_KEY\` … or the variable that \`keyVariable\` names.
Models may stand in for each other: only the model's own list is asked, not the lists of its spares. All models at one address share one queue.
\`OXBOW_MODEL\` and \`--model\` take a name, an alias, or \`provider:model\`. \`OPENAI_BASE_URL\` (or \`DEEPSEEK_BASE_URL\` …) replaces a
provider's address where \`baseUrl\` is not given. \`oxbow models list\` shows what there is, \`oxbow models test\` asks it.

## MCP servers

Their tools are tools of the agent: see [MCP](../guides/mcp.md).

\`\`\`toml
[mcp.issues]
url = "https://issues.internal/mcp"
headers = { authorization = "Bearer \${ISSUES_TOKEN}" }
trustReadOnly = true
tools = ["create_issue"]

[mcp.memory]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-memory"]
env = ["HOME"]
allow = ["*"]
\`\`\`

| key | |
|---|---|
${mcp.map((it) => `| \`${it.key}\` | ${it.description} Allowed: ${it.allowed}. |`).join('\n')}
`
}

const shown = (value: unknown): string => `\`${String(value)}\``

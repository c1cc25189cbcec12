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

Settings are read from four sources; later ones override earlier ones: the defaults of the profile, \`oxbow.toml\` in the
current directory (or the file in \`OXBOW_CONFIG\`), environment variables, command-line options. They are checked once, at
the start. Each error names the key, the value given, and what is allowed.

\`OXBOW_PROFILE\` is \`local\` (default), \`test\` or \`prod\`. In \`prod\` a language model, a store and an identity are required.

\`\`\`toml
model = "openai:gpt-5-mini"

[server]
port = 9000

[agent]
maxSteps = 6
totalTimeout = "5m"
\`\`\`

\`\${NAME}\` in a text value is replaced by the environment variable of that name; an unset variable is an error.

| key | variable | default | |
|---|---|---|---|
${table.join('\n')}

## Models

Without these settings the environment decides: \`OXBOW_MODEL\`, else the first provider whose key is set, else the offline
stub. With them, models have names, and aliases choose a model for each purpose:

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

API keys are read from the environment, never from the file: \`OPENAI_API_KEY\`, \`DEEPSEEK_API_KEY\` … or the variable in
\`keyVariable\`. A model's \`fallbacks\` are each tried once, in an order drawn by \`weight\`;
the fallbacks of a fallback are not used. All models at one address
share one queue. \`OXBOW_MODEL\` and \`--model\` accept a name, an alias, or \`provider:model\`. \`OPENAI_BASE_URL\` (or
\`DEEPSEEK_BASE_URL\` …) sets a provider's address if \`baseUrl\` is not given. \`oxbow models list\` lists the models,
\`oxbow models test\` sends each a request.

## MCP servers

The tools of these servers become tools of the agent: see [MCP](../guides/mcp.md).

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

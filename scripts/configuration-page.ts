// docs/configuration.md, from the settings that the service checks.
import type { SettingRow } from '@oxbow/server'

export function configurationPage(rows: readonly SettingRow[]): string {
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

Keys of providers come from the environment only: \`OPENAI_API_KEY\`, \`DEEPSEEK_API_KEY\`, \`DASHSCOPE_API_KEY\` and so on. Without
\`model\` the first provider whose key is set is used, else the offline model. \`OPENAI_BASE_URL\` (or \`DEEPSEEK_BASE_URL\` …)
replaces a provider's address; any server that speaks OpenAI's chat completions works as \`vllm:MODEL\` with \`VLLM_BASE_URL\`.
`
}

const shown = (value: unknown): string => `\`${String(value)}\``

// Rules for web/. Its files are scripts joined by tools/lab.py. Each uses names exported by earlier files, which tools/lint_page.py passes in here.
import js from "@eslint/js";

const seen = JSON.parse(process.env.ACKCLOCK_SEEN);

const ASKED = {
  "eqeqeq": "error",
  "no-array-constructor": "error",
  "no-constructor-return": "error",
  "no-duplicate-imports": "error",
  "no-empty": ["error", { allowEmptyCatch: false }],
  "no-eval": "error",
  "no-extend-native": "error",
  "no-implied-eval": "error",
  "no-new-func": "error",
  "no-promise-executor-return": "error",
  "no-script-url": "error",
  "no-self-compare": "error",
  "no-shadow": ["error", { builtinGlobals: false, hoist: "functions" }],
  "no-template-curly-in-string": "error",
  "no-throw-literal": "error",
  "no-unmodified-loop-condition": "error",
  "no-unused-vars": ["error", { vars: "local", args: "after-used" }],
  "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
  "no-useless-call": "error",
  "no-var": "error",
  "prefer-const": ["error", { destructuring: "all" }],
  // untrusted text is inserted into the page only as text
  "no-restricted-syntax": ["error",
    { selector: "AssignmentExpression[left.property.name=/^(innerHTML|outerHTML|srcdoc)$/]", message: "markup made of text; allowed: textContent, createElement" },
    { selector: "CallExpression[callee.property.name=/^(insertAdjacentHTML|write|writeln|setHTMLUnsafe|parseFromString|createContextualFragment)$/]", message: "markup made of text; allowed: textContent, createElement" },
  ],
};

export default Object.entries(seen).map(([name, names]) => ({
  files: [`web/${name}`],
  languageOptions: { ecmaVersion: 2024, sourceType: "script", globals: Object.fromEntries(names.map((one) => [one, "readonly"])) },
  linterOptions: { reportUnusedDisableDirectives: "error" },
  rules: { ...js.configs.recommended.rules, ...ASKED },
}));

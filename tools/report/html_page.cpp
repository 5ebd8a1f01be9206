#include "tools/report/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/cli/version.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

constexpr const char* kStyles =
    R"(:root{color-scheme:light dark;--page:#f6f8fa;--paper:#fff;--ink:#1f2328;--soft:#59636e;--edge:#d8dee4;--link:#0969da;--notice:#fff8e1;--notice-edge:#d4a72c}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--paper:#161b22;--ink:#e6edf3;--soft:#9aa4ae;--edge:#30363d;--link:#6cb6ff;--notice:#2b2410;--notice-edge:#9e7a1d}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 24px 48px}
h1{font-size:26px;margin:0;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:18px;margin:34px 0 12px;font-weight:620}
.subtitle{color:var(--soft);margin:4px 0 20px;overflow-wrap:anywhere}
.figures{display:flex;flex-wrap:wrap;gap:12px;margin:0 0 12px}
.figure{background:var(--paper);border:1px solid var(--edge);border-radius:8px;padding:12px 20px;min-width:150px;flex:1}
.figure b{display:block;font-size:28px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}
.figure span{display:block}.figure small{display:block;color:var(--soft);font-size:13px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(560px,100%),1fr));gap:14px;margin:0 0 14px}
.card{background:var(--paper);border:1px solid var(--edge);border-radius:8px;padding:6px;overflow-x:auto}
.card svg{display:block}
.scroll{overflow-x:auto;background:var(--paper);border:1px solid var(--edge);border-radius:8px;margin:0 0 14px;width:fit-content;min-width:min(613px,100%);max-width:100%}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:6px 14px;text-align:left;border-top:1px solid var(--edge);vertical-align:top;overflow-wrap:anywhere}
thead th{border-top:0;color:var(--soft);font-weight:600;white-space:nowrap}
td:first-child{white-space:nowrap}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
.notice{background:var(--notice);border:1px solid var(--notice-edge);border-radius:8px;padding:8px 14px;margin:0 0 12px}
summary{cursor:pointer;color:var(--link);margin:0 0 10px}
footer{color:var(--soft);font-size:13px;margin-top:36px}
@media print{body{background:#fff}.card,.scroll,.figure{break-inside:avoid}}
)";

/// Returns a relative path as a URL. File names may contain characters with a special meaning in
/// URLs, such as `#`, `?`, `%` and `:`.
std::string percent_encoded(const std::string& path) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._~-";
  std::string url;
  for (const char c : path) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return url;
}

std::string cell_text(const HtmlCell& cell) {
  std::string text = escaped(cell.text);
  if (!cell.link.empty())
    text = fmt::format("<a href=\"{}\">{}</a>", percent_encoded(cell.link), text);
  return cell.bold ? fmt::format("<b>{}</b>", text) : text;
}

}  // namespace

HtmlPage::HtmlPage(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void HtmlPage::figures(const std::vector<HtmlFigure>& figures) {
  body_ += "<div class=\"figures\">";
  for (const HtmlFigure& figure : figures) {
    body_ += fmt::format("<div class=\"figure\"><b>{}</b><span>{}</span><small>{}</small></div>\n",
                         escaped(figure.value), escaped(figure.label), escaped(figure.note));
  }
  body_ += "</div>\n";
}

void HtmlPage::section(const std::string& title) {
  body_ += closing();
  open_details_ = 0;
  in_section_ = true;
  body_ += fmt::format("<section><h2>{}</h2>\n", escaped(title));
}

void HtmlPage::paragraph(const std::string& text) {
  body_ += fmt::format("<p>{}</p>\n", escaped(text));
}

void HtmlPage::notice(const std::string& text) {
  body_ += fmt::format("<div class=\"notice\">{}</div>\n", escaped(text));
}

void HtmlPage::table(const HtmlTable& table) {
  const auto style = [&](std::size_t column) {
    return column < table.columns.size() && table.columns[column].numeric ? " class=\"number\""
                                                                          : "";
  };
  body_ += "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    body_ += fmt::format("<th{}>{}</th>", style(i), escaped(table.columns[i].name));
  body_ += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < std::max(row.size(), table.columns.size()); ++i)
      body_ += fmt::format("<td{}>{}</td>", style(i), i < row.size() ? cell_text(row[i]) : "");
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void HtmlPage::charts(const std::vector<std::string>& svgs) {
  body_ += "<div class=\"charts\">";
  for (const std::string& svg : svgs) body_ += fmt::format("<div class=\"card\">{}</div>\n", svg);
  body_ += "</div>\n";
}

void HtmlPage::begin_details(const std::string& summary) {
  body_ += fmt::format("<details><summary>{}</summary>\n", escaped(summary));
  ++open_details_;
}

void HtmlPage::end_details() {
  if (open_details_ == 0) return;
  body_ += "</details>\n";
  --open_details_;
}

std::string HtmlPage::closing() const {
  std::string text;
  for (int i = 0; i < open_details_; ++i) text += "</details>\n";
  return text + (in_section_ ? "</section>\n" : "");
}

std::string HtmlPage::text() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; img-src data:\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<link rel=\"icon\" href=\"data:,\"/>\n<title>{0}</title>\n<style>{1}{2}</style></head>\n"
      "<body><main><header><h1>{0}</h1><p class=\"subtitle\">{3}</p></header>\n{4}{5}"
      "<footer>written by precast {6}</footer></main></body></html>\n",
      escaped(title_), kStyles, chart_styles(), escaped(subtitle_), body_, closing(), kVersion);
}

}  // namespace precast::tools

#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// A cell of a table; text is escaped.
struct HtmlCell {
  std::string text{};
  /// The path to which the cell links, relative to the page; percent-encoded in the page. Empty: no
  /// link.
  std::string link{};
  bool bold = false;
};

struct HtmlTable {
  struct Column {
    std::string name{};
    /// Right-aligned, with digits of equal width.
    bool numeric = false;
  };
  std::vector<Column> columns{};
  /// Rows that are shorter than the header are padded with empty cells.
  std::vector<std::vector<HtmlCell>> rows{};
};

/// One of the large figures at the top of a page, above the charts.
struct HtmlFigure {
  std::string value{};
  std::string label{};
  /// Small text below the figure; may be empty.
  std::string note{};
};

/// A page in precast's design: one column of sections, light or dark according to the viewer's
/// system. It is self-contained: it has no scripts, and its content security policy forbids loading
/// anything. The reports of runs, grids and tables are built from it:
///
///   HtmlPage page("title", "what this is, in a line");
///   page.figures({{"71.4 %", "top-1"}});
///   page.section("Learning");
///   page.charts({line_chart_svg(...), scatter_chart_svg(...)});
///   page.table({...});
///   write_file("page.html", page.text());
///
/// All text is escaped; only charts are inserted unchanged. Content before the first section() is
/// placed below the title.
class HtmlPage {
 public:
  explicit HtmlPage(std::string title, std::string subtitle = {});

  void figures(const std::vector<HtmlFigure>& figures);
  /// Starts a section; ends the previous one and any open details.
  void section(const std::string& title);
  void paragraph(const std::string& text);
  /// An important note, such as one about an incomplete run or a damaged log.
  void notice(const std::string& text);
  void table(const HtmlTable& table);
  /// Adds charts, side by side if the window is wide enough. @param svgs results of the functions
  /// of tools/report/chart.
  void charts(const std::vector<std::string>& svgs);
  /// Starts a collapsed block with the heading `summary`; end_details() ends it.
  void begin_details(const std::string& summary);
  void end_details();

  /// Returns the complete document. More content can be added afterwards.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string closing() const;

  std::string title_;
  std::string subtitle_;
  std::string body_;
  bool in_section_ = false;
  int open_details_ = 0;
};

}  // namespace precast::tools
